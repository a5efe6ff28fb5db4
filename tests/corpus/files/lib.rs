//! Parses `<select>` and `<object>`.

pub fn parse(text: &str) -> Vec<Option<String>> {
    // "<!-- a comment -->" is kept.
    let tags = ["<script>", "</script>", "<style>"];
    tags.iter().map(|tag| text.contains(tag).then(|| (*tag).to_owned())).collect::<Vec<_>>()
}
