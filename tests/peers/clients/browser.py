"""A person at a browser, as a script: BROWSER="python browser.py" opens a link, follows it, and says yes to what is asked.

What the fields of a form are filled in with is in PERSON, as JSON: names of fields and their values.
"""

import html.parser
import http.cookiejar
import json
import os
import sys
import urllib.parse
import urllib.request

PAGES = 8


class Form(html.parser.HTMLParser):
    """The first form of a page."""

    def __init__(self):
        super().__init__()
        self.action, self.fields, self.open = None, {}, False

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "form" and self.action is None:
            self.action, self.open = attributes.get("action") or "", True
        elif self.open and tag in ("input", "button") and attributes.get("name"):
            # The first button of a name is the one that says yes.
            self.fields.setdefault(attributes["name"], attributes.get("value") or "")

    def handle_endtag(self, tag):
        if tag == "form":
            self.open = False


def visit(url):
    """Follows the link until a page asks nothing more; that page's address and text."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
    person = json.loads(os.environ.get("PERSON", "{}"))
    data = None
    for _ in range(PAGES):
        request = urllib.request.Request(url, data, {"Accept": "text/html"})
        with browser.open(request, timeout=30) as page:
            url, text = page.geturl(), page.read(1 << 20).decode(errors="replace")
        form = Form()
        form.feed(text)
        if form.action is None:
            return url, text
        url = urllib.parse.urljoin(url, form.action)
        data = urllib.parse.urlencode({**form.fields, **{name: value for name, value in person.items() if name in form.fields}}).encode()
    raise RuntimeError(f"still asked after {PAGES} pages")


if __name__ == "__main__":
    visit(sys.argv[1])
