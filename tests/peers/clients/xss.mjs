// What would run, or stand on the page as an element, if anybody made markup of it.
import parts from './xss.json' with { type: 'json' };

export const XSS = parts.join(' ');
