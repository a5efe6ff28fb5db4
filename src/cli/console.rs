//! `lychgate console`: prints and opens a link to the web console.

use std::io::{self, IsTerminal, Write};

use super::admin_client::{AdminClient, send_request};
use super::exit::{Exit, usage_error};
use crate::oauth::browser;

/// Arguments of `lychgate console`.
#[derive(clap::Args)]
#[command(after_help = "\
The link is valid once, for one minute; its session ends after an hour without
use. The link comes from the admin port, which requires the token that the
gateway writes at start (`token_file` under `[approval]`), readable only by the
gateway's user. The console's login form accepts that token too.

The console is enabled if the admin port is on loopback; otherwise see `console`
under `[admin]`.

The program named by $BROWSER opens the browser; the default is the system's.")]
pub(super) struct Args {
    /// Print the link instead of opening a browser; implied unless the output is a terminal
    #[arg(long)]
    no_browser: bool,
    #[command(flatten)]
    desk: AdminClient,
}

/// Prints a link and opens it; exit code 0 if there is one, 2 if not.
pub(super) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let link = match args.link() {
        Ok(link) => link,
        Err(exit) => return exit.report(err).map(|_| 2),
    };
    writeln!(out, "{link}")?;
    out.flush()?;
    if !args.no_browser && io::stdout().is_terminal() && !browser::open(&link) {
        writeln!(
            err,
            "could not open a browser: open the link within a minute"
        )?;
    }
    Ok(0)
}

impl Args {
    fn link(&self) -> Result<String, Exit> {
        let (address, token) = self.desk.target()?;
        let response = send_request(address, &token, "POST", "/console/api/code", "")?;
        let text = |key: &str| response.root().get_str(key);
        let code = text("code")
            .ok_or_else(|| usage_error(format!("the service at {address} is not lychgate")))?;
        let base_url = text("at").map_or_else(|| format!("http://{address}"), |at| at.into_owned());
        Ok(format!("{base_url}/console#code={code}"))
    }
}
