//! Putting servers back.

use std::io;
use std::path::{Path, PathBuf};

use super::client::{Client, ConfigFile};
use super::files::{gone, hold, put, sweep};
use super::gate::GateConfig;
use super::moved::Moved;
use super::records::{Records, Released};
use super::{Desk, UninstallArgs, diff, read};

impl Desk<'_> {
    /// Carries `uninstall` out.
    pub(super) fn uninstall(&mut self, args: &UninstallArgs) -> io::Result<u8> {
        let mut code = 0;
        let mut steps = vec![];
        let _held = (!args.dry_run && self.state.exists()).then(|| hold(&self.state)).transpose()?;
        let mut records = Records::read(&self.state)?;
        for (file, place, moved) in self.installed(args, &records)? {
            let text = read(&file)?.unwrap_or_default();
            let back = moved.put_back(&text, file.format);
            for name in &back.changed {
                writeln!(self.err, "left as it is: `{}` of {} was changed since", name.escape_debug(), file.path.display())?;
                code = 1;
            }
            for name in &back.removed {
                writeln!(self.err, "`{}` of {} was removed since, and stays so", name.escape_debug(), file.path.display())?;
            }
            write!(self.out, "{}", diff::diff(&file.path, file.format, &text, &back.text))?;
            steps.push((file, place, text, back));
        }
        if steps.is_empty() {
            writeln!(self.err, "nothing of lychgate is installed there")?;
            return Ok(1);
        }
        if args.dry_run || !(self.yes)(self.err)? {
            return Ok(1);
        }
        for (file, place, text, back) in steps {
            if read(&file)?.unwrap_or_default() != text {
                return Err(io::Error::other(format!("`{}` has changed meanwhile\n  hint: try again", file.path.display())));
            }
            if back.text == text {
                sweep(&file.path);
            } else {
                put(&file.path, back.text.as_bytes(), None)?;
            }
            if back.changed.is_empty() {
                self.forget(&place, &mut records)?;
            }
            writeln!(self.err, "{}: put back", file.path.display())?;
        }
        Ok(code)
    }

    /// Takes back what was added to the gate's config, unless another client is led to it, and then what was written down: what
    /// fails before that can be tried again.
    fn forget(&mut self, place: &Path, records: &mut Records) -> io::Result<()> {
        let Some(moved) = records.take(place) else {
            return Ok(());
        };
        if let Some(path) = &moved.gate {
            let (mut gate, mut released) = (GateConfig::read(path)?, Released::default());
            moved.servers.iter().chain(&moved.dropped).for_each(|server| records.release(server, &mut gate, &mut released));
            for name in &released.stay {
                writeln!(self.err, "`[upstream.{name}]` of {} was changed since, and stays", path.display())?;
            }
            records.write_handed()?;
            gate.write()?;
            released.remove_secrets(&gate)?;
        }
        gone(place)?;
        gone(&moved.backup)
    }

    /// What is written down of the clients that are meant.
    fn installed(&self, args: &UninstallArgs, records: &Records) -> io::Result<Vec<(ConfigFile, PathBuf, Moved)>> {
        let named = args.file.as_ref().map(std::path::absolute).transpose()?;
        let mut out = vec![];
        for (place, moved) in records.iter() {
            let stem = place.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let name = stem.rsplit_once('-').map_or(stem, |(name, _)| name);
            let Ok(client) = <Client as clap::ValueEnum>::from_str(name, false) else {
                continue;
            };
            let Some(file) = ConfigFile::named(client, &moved.file, &self.places) else {
                continue;
            };
            if args.client.is_none_or(|wanted| wanted == client) && named.as_ref().is_none_or(|named| *named == file.path) {
                out.push((file, place.clone(), moved.clone()));
            }
        }
        Ok(out)
    }
}
