//! The arguments that select lines of the audit log.

use std::time::{Duration, SystemTime};

use crate::review::Filter;

/// Options that choose lines.
#[derive(clap::Args)]
pub(super) struct FilterArgs {
    /// Only lines of this upstream
    #[arg(long)]
    upstream: Option<String>,
    /// Only lines of this agent
    #[arg(long)]
    agent: Option<String>,
    /// Only lines of this tool
    #[arg(long)]
    tool: Option<String>,
    /// Only lines in which this rule matched
    #[arg(long)]
    rule: Option<String>,
    /// Only lines with this verdict, enforced or observed
    #[arg(long, value_parser = ["pass", "rewrite", "ask", "block"])]
    verdict: Option<String>,
    /// Only lines of this event, such as `judged`, `failed` or `reloaded`
    #[arg(long)]
    event: Option<String>,
    /// Only lines since this time: an age (`30m`, `24h`, `7d`), or a date and time (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<SystemTime>,
    /// Only lines before this time
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<SystemTime>,
    /// Include the traffic of `lychgate prove`
    #[arg(long)]
    prove: bool,
}

impl FilterArgs {
    pub(super) fn filter(&self) -> Filter {
        Filter {
            upstream: self.upstream.clone(),
            agent: self.agent.clone(),
            tool: self.tool.clone(),
            rule: self.rule.clone(),
            verdict: self.verdict.clone(),
            event: self.event.clone(),
            since: self.since,
            until: self.until,
            prove: self.prove,
        }
    }
}

/// Parses a time as people write it.
pub(in crate::cli) fn time(text: &str) -> Result<SystemTime, String> {
    if let Ok(ago) = humantime::parse_duration(text) {
        let time = SystemTime::now()
            .checked_sub(ago)
            .filter(|time| *time >= SystemTime::UNIX_EPOCH);
        return time.ok_or_else(|| "too long ago".to_owned());
    }
    let is_date = text.len() == 10;
    let timestamp = if is_date {
        format!("{text}T00:00:00Z")
    } else {
        text.to_owned()
    };
    let time = humantime::parse_rfc3339_weak(&timestamp).map_err(|_| {
        "not a duration (`24h`), a date (`2026-11-22`) or a time (`2026-11-22T10:00:00Z`)"
            .to_owned()
    })?;
    if time > SystemTime::now() + Duration::from_secs(366 * 86_400) {
        Err("in the future".to_owned())
    } else {
        Ok(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_ages_days_or_moments() {
        let day = time("2026-01-02").unwrap();
        assert_eq!(day, time("2026-01-02T00:00:00Z").unwrap());
        assert_eq!(day, time("2026-01-02 00:00:00").unwrap());
        let ago = SystemTime::now()
            .duration_since(time("2h").unwrap())
            .unwrap();
        assert!((7190..7210).contains(&ago.as_secs()));
        for bad in ["", "yesterday", "2026-13-01", "9999-01-01", "99999999999y"] {
            assert!(time(bad).is_err(), "{bad}");
        }
    }
}
