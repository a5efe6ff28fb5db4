#!/bin/sh
# usage: install.sh <title> <template>
cat > index.html <<EOF
<!doctype html>
<title>$1</title>
<div style="display:none">$2</div>
EOF
