# Takes out <script> and <style>, with what is in them.
def clean(html)
  html.gsub(%r{<script.*?</script>}m, "").gsub(/<!--.*?-->/m, "")
end
