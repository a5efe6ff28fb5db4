//! The HTML of the login pages.

use crate::oauth::{LoginPage, Principal};

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1c2430;--soft:#5b6675;--line:#d5dae1;--ground:#f4f5f7;--card:#fff;--go:#1f5fbf}\
@media(prefers-color-scheme:dark){:root{--ink:#e8ebef;--soft:#9aa5b3;--line:#39424e;--ground:#14181d;--card:#1d232a;--go:#6ea4f4}}\
body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,sans-serif}\
main{max-width:34rem;margin:8vh auto;padding:2rem;background:var(--card);border:1px solid var(--line);border-radius:10px}\
h1{font-size:1.3rem;margin:0 0 1rem}p{margin:.8rem 0}dl{display:grid;grid-template-columns:max-content 1fr;gap:.4rem 1rem;margin:1.2rem 0}\
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}code{font:.92em ui-monospace,monospace}\
button{font:inherit;padding:.6rem 1.2rem;border:0;border-radius:6px;background:var(--go);color:var(--card);cursor:pointer}\
input{font:inherit;box-sizing:border-box;width:100%;padding:.5rem;margin:.4rem 0 .8rem;border:1px solid var(--line);border-radius:6px;background:var(--ground);color:var(--ink)}\
details{margin-top:1.6rem;color:var(--soft)}summary{cursor:pointer}.soft{color:var(--soft)}";

/// Returns the page that asks a person to log in.
pub(super) fn login(login_page: &LoginPage) -> String {
    let plan = &login_page.plan;
    let who = match &plan.party.principal {
        Principal::Gate => "all agents that use this gate".to_owned(),
        Principal::Agent(name) => format!("the agent <code>{}</code> alone", escape(name)),
        Principal::User(name) => format!("the user <code>{}</code> alone", escape(name)),
    };
    let scopes: Vec<String> = plan
        .scopes
        .0
        .iter()
        .map(|scope| format!("<code>{}</code>", escape(scope)))
        .collect();
    let scopes = if scopes.is_empty() {
        "whatever the server gives".to_owned()
    } else {
        scopes.join(", ")
    };
    let upstream = escape(&login_page.upstream);
    let issuer = escape(&plan.party.issuer);
    let resource = escape(&plan.party.resource);
    page(
        &format!("Log in to {upstream}"),
        &format!(
            "<p>A call to the server <code>{upstream}</code> waits for a login.</p>\
             <dl><dt>Log in at</dt><dd><code>{issuer}</code></dd><dt>Server</dt><dd><code>{resource}</code></dd>\
             <dt>It may</dt><dd>{scopes}</dd><dt>Used by</dt><dd>{who}</dd></dl>\
             <p class=\"soft\">Go on only if this is what you expect: whoever uses this login can do on that server what you \
             allow there. lychgate keeps it sealed and shows it to nobody.</p>\
             <form method=\"post\"><button id=\"go\">Go on</button></form>\
             <details><summary>The browser ended at an address that it cannot open?</summary>\
             <p>That happens where the gate runs on another machine. Paste the whole address here:</p>\
             <form method=\"post\"><label>Address<input name=\"address\" autocomplete=\"off\" required></label>\
             <button>Finish</button></form></details>"
        ),
    )
}

/// Returns the page for a successful login.
pub(super) fn success(upstream: &str) -> String {
    let upstream = escape(upstream);
    page(
        "Logged in",
        &format!(
            "<p>lychgate is logged in to <code>{upstream}</code>. The call can be made again; this page can be closed.</p>"
        ),
    )
}

/// Returns the page for a ticket that is no longer valid.
pub(super) fn expired() -> String {
    page(
        "Nothing to do here",
        "<p>This login is done, or its time is over. Make the call again: its answer has a new link if one is owed.</p>",
    )
}

/// Returns the page for a failed login.
pub(super) fn failed(why: &str) -> String {
    let why = escape(why);
    page(
        "Not logged in",
        &format!(
            "<p>It did not work: {why}.</p><p class=\"soft\">Make the call again for a new link; the operator finds more in <code>lychgate auth status</code>.</p>"
        ),
    )
}

/// Returns a page with a title and HTML content.
pub(in crate::listen) fn page(title: &str, main: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{title} · lychgate</title><style>{STYLE}</style></head><body><main><h1>{title}</h1>{main}</main></body></html>"
    )
}

pub(in crate::listen) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_others_is_markup() {
        let told = failed("<script>alert('x')</script> & \"more\"");
        assert_contains!(
            told,
            "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &quot;more&quot;"
        );
        assert_lacks!(told, "<script>");
        assert!(success("<b>").contains("<code>&lt;b&gt;</code>"));
    }
}
