//! Dates, written as TOML local dates or as strings.

use std::time::{Duration, SystemTime};

use toml::de::DeValue;

use super::value::Content;
use super::{Located, Table};

/// A day in UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Day {
    /// The date as `YYYY-MM-DD`.
    pub text: Box<str>,
    /// When the day ends.
    pub end: SystemTime,
}

impl Day {
    /// Parses `YYYY-MM-DD`; `None` if the day does not exist.
    pub fn read(written: &str) -> Option<Self> {
        let begins = humantime::parse_rfc3339(&format!("{written}T00:00:00Z")).ok()?;
        let ends = begins + Duration::from_secs(86_400);
        // If the month has no such day, formatting the parsed time gives another date.
        let exists = written.len() == 10
            && humantime::format_rfc3339_seconds(begins)
                .to_string()
                .starts_with(written);
        exists.then(|| Self {
            text: written.into(),
            end: ends,
        })
    }

    /// Returns the day that is `days` days after `now`.
    pub fn after(now: SystemTime, days: u64) -> Option<Self> {
        let then = now.checked_add(Duration::from_secs(days.checked_mul(86_400)?))?;
        Self::read(
            humantime::format_rfc3339_seconds(then)
                .to_string()
                .get(..10)?,
        )
    }
}

impl Table<'_> {
    pub fn day(&self, key: &str) -> Option<Located<Day>> {
        let value = self.take(key)?;
        let written = match value.content {
            Content::Other(DeValue::Datetime(date)) => date.to_string(),
            Content::String(text) => text.to_owned(),
            _ => {
                self.report_type(&value, key, "a day");
                return None;
            }
        };
        let place = self.source.place(value.at);
        let Some(day) = Day::read(&written) else {
            let message = format!(
                "`{}` is not a valid date for `{key}`",
                written.escape_debug()
            );
            self.fault_at(&place, message, Some("write it as in `2027-01-31`"));
            return None;
        };
        Some(Located { value: day, place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_one_of_the_calendar() {
        let day = Day::read("2028-02-29").unwrap();
        assert_eq!(
            humantime::format_rfc3339_seconds(day.end).to_string(),
            "2028-03-01T00:00:00Z"
        );
        for none in [
            "2027-02-29",
            "2027-13-01",
            "2027-1-1",
            "2027-01-01T00:00:00Z",
            "",
            "tomorrow",
        ] {
            assert_eq!(Day::read(none), None, "{none}");
        }
        assert_eq!(Day::after(day.end, 30).unwrap().text.as_ref(), "2028-03-31");
    }
}
