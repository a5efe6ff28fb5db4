//! Restores servers.

use std::io;
use std::path::{Path, PathBuf};

use super::client::{Client, ConfigFile};
use super::files::{add_mark, lock_state, remove_if_exists, replace_file, sweep};
use super::gate::GateConfig;
use super::move_record::MoveRecord;
use super::records::{Leftovers, Records};
use super::{InstallContext, UninstallArgs, diff, read};
use crate::cli::format_count;

/// The planned restoration of a file.
struct FileRestore {
    file: ConfigFile,
    place: PathBuf,
    /// The current text; `None` if the file no longer exists.
    text: Option<String>,
    /// The text to be written, if any.
    new: Option<String>,
    /// The number of servers that were changed since and are left unchanged.
    changed: usize,
    /// The path of the backup.
    backup: PathBuf,
}

impl InstallContext<'_> {
    /// Runs `uninstall`.
    pub(super) fn uninstall(&mut self, args: &UninstallArgs) -> io::Result<u8> {
        let mut steps = vec![];
        let _lock = (!args.dry_run && self.state.exists())
            .then(|| lock_state(&self.state))
            .transpose()?;
        let mut records = Records::read(&self.state)?;
        for (file, place, moved) in self.select_records(args, &records)? {
            steps.push(self.plan_step(file, place, &moved, args.forget)?);
        }
        if steps.is_empty() {
            writeln!(self.err, "lychgate is not installed there")?;
            return Ok(1);
        }
        if args.dry_run || !(self.confirm)(self.err)? {
            return Ok(1);
        }
        let code = u8::from(steps.iter().any(|step| step.changed > 0));
        for step in steps {
            self.restore_file(step, args.forget, &mut records)?;
        }
        Ok(code)
    }

    /// Plans the restoration of a file and prints it.
    fn plan_step(
        &mut self,
        file: ConfigFile,
        place: PathBuf,
        record: &MoveRecord,
        forget: bool,
    ) -> io::Result<FileRestore> {
        let text = read(&file)?;
        let mut step = FileRestore {
            file,
            place,
            text,
            new: None,
            changed: 0,
            backup: record.backup.clone(),
        };
        let path = step.file.path.display();
        if forget {
            writeln!(
                self.err,
                "{path} is left unchanged; its backup is removed: {}",
                step.backup.display()
            )?;
        } else if let Some(text) = &step.text {
            let outcome = record.restore(text, step.file.format);
            for name in &outcome.changed {
                writeln!(
                    self.err,
                    "left unchanged: `{}` of {path} was changed since",
                    name.escape_debug()
                )?;
            }
            for name in &outcome.removed {
                writeln!(
                    self.err,
                    "`{}` of {path} was removed since, and is not restored",
                    name.escape_debug()
                )?;
            }
            write!(
                self.out,
                "{}",
                diff::diff(&step.file.path, step.file.format, text, &outcome.text)
            )?;
            step.changed = outcome.changed.len();
            step.new = (outcome.text != *text).then_some(outcome.text);
        }
        Ok(step)
    }

    fn restore_file(
        &mut self,
        step: FileRestore,
        forget: bool,
        records: &mut Records,
    ) -> io::Result<()> {
        let path = step.file.path.display();
        let backup = step.backup.display();
        if read(&step.file)? != step.text {
            return Err(io::Error::other(format!(
                "`{path}` was changed in the meantime\n  hint: try again"
            )));
        }
        match &step.new {
            Some(new) => replace_file(&step.file.path, &add_mark(&step.file.path, new)?, None)?,
            None => sweep(&step.file.path),
        }
        if step.changed > 0 {
            let client = step.file.client.name();
            let count = format_count(step.changed, "server");
            return writeln!(
                self.err,
                "{path}: {count} not restored; backup: {backup}\n  hint: resolve the changes manually and run `lychgate uninstall {client}` again, or `lychgate uninstall --forget --file {path}` to keep the file as it is"
            );
        }
        self.forget(
            &step.place,
            if forget { step.text.as_deref() } else { None },
            records,
        )?;
        let result = match &step.text {
            _ if forget => "left unchanged; backup removed",
            Some(_) => "restored",
            None => {
                "no longer exists and is not restored; its additions to the gate's config are removed"
            }
        };
        writeln!(self.err, "{path}: {result}")
    }

    /// Removes what was added to the gate's config, unless another client uses it or the remaining
    /// `text` of the file leads to it. The record is removed last, so that a failure before that
    /// can be retried.
    fn forget(
        &mut self,
        place: &Path,
        text: Option<&str>,
        records: &mut Records,
    ) -> io::Result<()> {
        let Some(moved) = records.take(place) else {
            return Ok(());
        };
        if let Some(path) = &moved.gate {
            let mut gate = GateConfig::read(path)?;
            let mut leftovers = Leftovers::default();
            for server in moved.servers.iter().chain(&moved.dropped) {
                let name = server.upstream.as_deref().unwrap_or_default();
                let is_referenced = |text: &str| {
                    ['"', '\'']
                        .iter()
                        .any(|end| text.contains(&format!("/mcp/{name}{end}")))
                };
                if text.is_none_or(|text| !is_referenced(text)) {
                    records.release(server, &mut gate, &mut leftovers);
                } else if !server.block.is_empty() {
                    let file = moved.file.display();
                    writeln!(
                        self.err,
                        "`[upstream.{name}]` of {} stays: {file} leads to it",
                        path.display()
                    )?;
                }
            }
            for name in &leftovers.changed_upstreams {
                writeln!(
                    self.err,
                    "`[upstream.{name}]` of {} was changed since, and is kept",
                    path.display()
                )?;
            }
            if let Some(base) = moved.base.as_ref().filter(|_| !records.leads_to(path)) {
                gate.clear_if_unused(base);
            }
            records.write_unwritten()?;
            gate.write()?;
            leftovers.remove_secrets(&gate)?;
        }
        remove_if_exists(place)?;
        remove_if_exists(&moved.backup)
    }

    /// Returns the records that the arguments select.
    fn select_records(
        &self,
        args: &UninstallArgs,
        records: &Records,
    ) -> io::Result<Vec<(ConfigFile, PathBuf, MoveRecord)>> {
        let path = args.file.as_ref().map(std::path::absolute).transpose()?;
        let mut out = vec![];
        for (place, moved) in records.iter() {
            let stem = place
                .file_stem()
                .and_then(|stem| stem.to_str())
                .unwrap_or_default();
            let name = stem.rsplit_once('-').map_or(stem, |(name, _)| name);
            let Ok(client) = <Client as clap::ValueEnum>::from_str(name, false) else {
                continue;
            };
            let Some(file) = ConfigFile::from_path(client, &moved.file, &self.places) else {
                continue;
            };
            if args.client.is_none_or(|wanted| wanted == client)
                && path.as_ref().is_none_or(|named| *named == file.path)
            {
                out.push((file, place.clone(), moved.clone()));
            }
        }
        Ok(out)
    }
}
