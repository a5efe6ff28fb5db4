//! The files that define the service: a systemd user unit and a launchd property list.

/// The name of the systemd unit.
pub(super) const UNIT: &str = "lychgate.service";
/// The label of the launchd agent.
pub(super) const LABEL: &str = "lychgate";
/// The marker of files that `lychgate service` wrote and may replace or remove.
pub(super) const MARK: &str = "Written by `lychgate service install`";

/// The gate process that a service starts.
pub(super) struct Gate {
    pub(super) program: String,
    pub(super) config: String,
    /// Environment variables to set.
    pub(super) variables: Vec<(String, String)>,
    /// The file to which launchd writes standard error.
    pub(super) log: String,
}

/// Returns the systemd user unit.
pub(super) fn systemd(gate: &Gate) -> String {
    let Gate {
        program,
        config,
        variables,
        ..
    } = gate;
    let variables: String = variables
        .iter()
        .map(|(name, value)| format!("Environment={}\n", quote(&format!("{name}={value}"))))
        .collect();
    let program = quote(program);
    let config = quote(config);
    format!(
        "# {MARK}; to remove it: lychgate service uninstall\n\
         [Unit]\n\
         Description=lychgate, a security gateway between AI agents and MCP servers\n\
         \n\
         [Service]\n\
         Type=exec\n\
         ExecStart={program} run --config {config}\n\
         ExecReload=/bin/kill -HUP $MAINPID\n\
         {variables}\
         # Variables for `{{ env = \"NAME\" }}` in the config, one NAME=VALUE per line; keep it at mode 0600.\n\
         EnvironmentFile=-%E/lychgate/environment\n\
         Restart=on-failure\n\
         RestartSec=2\n\
         TimeoutStopSec=30\n\
         KillMode=mixed\n\
         UMask=0077\n\
         NoNewPrivileges=yes\n\
         \n\
         [Install]\n\
         WantedBy=default.target\n"
    )
}

/// Returns the launchd property list.
pub(super) fn launchd(gate: &Gate) -> String {
    let string = |text: &str| format!("<string>{}</string>", escape_xml(text));
    let words = [&*gate.program, "run", "--config", &*gate.config];
    let words: String = words
        .iter()
        .map(|word| format!("\t\t{}\n", string(word)))
        .collect();
    let pair = |(name, value): &(String, String)| {
        format!(
            "\t\t<key>{}</key>\n\t\t{}\n",
            escape_xml(name),
            string(value)
        )
    };
    let variables: String = gate.variables.iter().map(pair).collect();
    let environment = if variables.is_empty() {
        String::new()
    } else {
        format!("\t<key>EnvironmentVariables</key>\n\t<dict>\n{variables}\t</dict>\n")
    };
    let log = string(&gate.log);
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <!-- {MARK}; to remove it: lychgate service uninstall -->\n\
         <plist version=\"1.0\">\n\
         <dict>\n\
         \t<key>Label</key>\n\t<string>{LABEL}</string>\n\
         \t<key>ProgramArguments</key>\n\t<array>\n{words}\t</array>\n\
         {environment}\
         \t<key>RunAtLoad</key>\n\t<true/>\n\
         \t<key>KeepAlive</key>\n\t<dict>\n\t\t<key>SuccessfulExit</key>\n\t\t<false/>\n\t</dict>\n\
         \t<key>ThrottleInterval</key>\n\t<integer>10</integer>\n\
         \t<key>ExitTimeOut</key>\n\t<integer>30</integer>\n\
         \t<key>Umask</key>\n\t<integer>63</integer>\n\
         \t<key>StandardErrorPath</key>\n\t{log}\n\
         </dict>\n\
         </plist>\n"
    )
}

/// Returns the config that an installed service names, in the format written by the two functions
/// above.
pub(super) fn find_config(text: &str) -> Option<String> {
    if let Some((_, rest)) = text.split_once(" run --config ") {
        return unquote(rest.lines().next()?);
    }
    let (_, rest) = text.split_once("<string>--config</string>\n")?;
    let value = rest
        .lines()
        .next()?
        .trim()
        .strip_prefix("<string>")?
        .strip_suffix("</string>")?;
    Some(
        value
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&"),
    )
}

/// Quotes a word of a systemd command line (systemd.service(5), "Command lines"; systemd.unit(5),
/// "Specifiers").
fn quote(word: &str) -> String {
    let escaped = word
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('%', "%%")
        .replace('$', "$$");
    format!("\"{escaped}\"")
}

fn unquote(word: &str) -> Option<String> {
    let inner = word.strip_prefix('"')?.strip_suffix('"')?;
    let plain = inner.replace("$$", "$").replace("%%", "%");
    let mut out = String::new();
    let mut letters = plain.chars();
    while let Some(letter) = letters.next() {
        out.push(if letter == '\\' {
            letters.next()?
        } else {
            letter
        });
    }
    Some(out)
}

fn escape_xml(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
