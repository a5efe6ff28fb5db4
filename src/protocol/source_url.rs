//! Recognizes URLs of source files, which an agent reads in order to edit them, as opposed to web
//! pages.

/// Extensions of files that servers return unchanged. Those of pages (`html`, `php`, `jsp`) are not
/// included.
#[rustfmt::skip]
const EXTENSIONS: [&str; 73] = [
    "adoc", "astro", "bash", "bat", "c", "cc", "cfg", "cjs", "clj", "cpp", "cs", "css", "csv", "cts", "diff", "ejs", "erb", "ex",
    "go", "gradle", "h", "haml", "hbs", "hpp", "hs", "ini", "ipynb", "j2", "java", "jinja", "js", "json", "jsx", "kt", "less",
    "liquid", "lua", "m", "markdown", "md", "mdx", "mjs", "mts", "mustache", "patch", "po", "ps1", "pug", "py", "rb", "rs", "rst",
    "sass", "scala", "scss", "sh", "sql", "svelte", "svg", "swift", "tex", "toml", "ts", "tsx", "twig", "txt", "vue",
    "xml", "xsd", "xsl", "xslt", "yaml", "yml",
];

/// Reports whether a text is the URL of a web server.
pub fn is_web_url(text: &str) -> bool {
    after_scheme(text).is_some()
}

/// Reports whether a web URL names a source file: by the extension of its path, or because its host
/// serves raw files (`raw.githubusercontent.com`).
pub fn names_source_file(url: &str) -> bool {
    let Some(rest) = after_scheme(url) else {
        return false;
    };
    let (host, path) = rest
        .split_at_checked(rest.find(['/', '?', '#']).unwrap_or(rest.len()))
        .unwrap_or_default();
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let file = path.rsplit('/').next().unwrap_or_default();
    let extension = file
        .rsplit_once('.')
        .map(|(_, extension)| extension.to_ascii_lowercase())
        .unwrap_or_default();
    let is_raw_host = host
        .get(..4)
        .is_some_and(|label| label.eq_ignore_ascii_case("raw."));
    is_raw_host && !file.is_empty() || EXTENSIONS.contains(&&*extension)
}

fn after_scheme(url: &str) -> Option<&str> {
    ["http://", "https://"].into_iter().find_map(|scheme| {
        let start = url
            .get(..scheme.len())
            .filter(|start| start.eq_ignore_ascii_case(scheme))?;
        url.get(start.len()..)
    })
}

#[cfg(test)]
mod tests {
    use super::names_source_file;

    #[test]
    fn source_files_are_known_by_their_extension_or_host() {
        for url in [
            "https://example.org/a/App.vue",
            "HTTPS://example.org/icon.SVG?size=2#x",
            "http://example.org/pom.xml",
            "https://raw.example/x/index.html",
            "https://git.example/me/repo/raw/main/layout.ejs",
        ] {
            assert!(names_source_file(url), "{url}");
        }
        for url in [
            "https://example.org/index.html",
            "https://example.org/",
            "https://example.rs",
            "https://example.org/search?q=a.vue",
            "https://example.org/v1.2/guide",
            "https://example.org/page.php",
            "https://raw.example/",
            "file:///srv/App.vue",
        ] {
            assert!(!names_source_file(url), "{url}");
        }
    }
}
