"""Render the <template> of a view."""

PAGE = """<html><body hidden>
<script>var a = "{name}"</script>
</body></html>"""


def render(name: str) -> str:
    return PAGE.format(name=name)
