package main

import "html/template"

// Page is shown for <title> and <style> placeholders.
const page = `<html><head><title>{{.Title}}</title></head><body><!-- list --></body></html>`

func main() {
	template.Must(template.New("page").Parse(page))
}
