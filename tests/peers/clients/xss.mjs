// What would run, or stand on the page as an element, if anybody made markup of it.
export const XSS = [
  '"><img src=x onerror="owned(1)">', '<script>owned(2)</script>', '<svg onload=owned(3)>', '<iframe srcdoc="<script>parent.owned(4)</script>"></iframe>',
  '<b class="planted">bold</b>', '</pre></textarea><style>*{display:none}</style>', 'javascript:owned(5)', '\u202eevil\u2066\u200b', '{{constructor.constructor("owned(6)")()}}',
].join(' ');
