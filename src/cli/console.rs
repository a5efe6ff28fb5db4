//! `lychgate console`: a link to the page on which people see what the gate does.

use std::io::{self, IsTerminal, Write};

use super::desk::{Desk, ask};
use super::trouble::Trouble;
use crate::oauth::browser;

/// Arguments of `lychgate console`.
#[derive(clap::Args)]
#[command(after_help = "\
The link counts once and for a minute; the session that it opens ends an hour after it was last used. It comes from the
gate's admin port, for the token that the gate writes at start (`token_file` under `[approval]`), which only the gate's own
user can read. That token opens the console's own form too.

The console is on where the admin port is on loopback; elsewhere see `console` under `[admin]`.

`$BROWSER` names the program that opens the browser, else it is the system's own.")]
pub(super) struct Args {
    /// Print the link and open no browser; so it is anyway where the output is no terminal
    #[arg(long)]
    no_browser: bool,
    #[command(flatten)]
    desk: Desk,
}

/// Prints a link, and opens it; 0 if there is one, 2 if not.
pub(super) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let link = match args.link() {
        Ok(link) => link,
        Err(trouble) => return trouble.told(err).map(|_| 2),
    };
    writeln!(out, "{link}")?;
    out.flush()?;
    if !args.no_browser && io::stdout().is_terminal() && !browser::open(&link) {
        writeln!(err, "no browser could be opened: open the link yourself, within a minute")?;
    }
    Ok(0)
}

impl Args {
    fn link(&self) -> Result<String, Trouble> {
        let (address, token) = self.desk.place()?;
        let said = ask(address, &token, "POST", "/console/api/code", "")?;
        let word = |key: &str| said.root().get(key).and_then(|value| value.str());
        let code = word("code").ok_or_else(|| Trouble::Told(2, format!("what answers at {address} is not a gate")))?;
        let at = word("at").map_or_else(|| format!("http://{address}"), |at| at.into_owned());
        Ok(format!("{at}/console#code={code}"))
    }
}
