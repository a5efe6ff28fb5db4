//! Putting servers back.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::client::{Client, ConfigFile};
use super::gate::GateConfig;
use super::moved::{Moved, put};
use super::{Desk, UninstallArgs, diff, read};

impl Desk<'_> {
    /// Carries `uninstall` out.
    pub(super) fn uninstall(&mut self, args: &UninstallArgs) -> io::Result<u8> {
        let mut code = 0;
        let mut steps = vec![];
        for (file, place, moved) in self.installed(args)? {
            let text = read(&file)?.unwrap_or_default();
            let back = moved.put_back(&text, file.format);
            for name in &back.changed {
                writeln!(self.err, "left as it is: `{}` of {} was changed since", name.escape_debug(), file.path.display())?;
                code = 1;
            }
            write!(self.out, "{}", diff::diff(&file.path, file.format, &text, &back.text))?;
            steps.push((file, place, moved, text, back));
        }
        if steps.is_empty() {
            writeln!(self.err, "nothing of lychgate is installed there")?;
            return Ok(1);
        }
        if args.dry_run || !(self.yes)(self.err)? {
            return Ok(1);
        }
        for (file, place, moved, text, back) in steps {
            if read(&file)?.unwrap_or_default() != text {
                return Err(io::Error::other(format!("`{}` has changed meanwhile\n  hint: try again", file.path.display())));
            }
            put(&file.path, back.text.as_bytes(), None)?;
            if back.changed.is_empty() {
                self.forget(&place, &moved)?;
            }
            writeln!(self.err, "{}: put back", file.path.display())?;
        }
        Ok(code)
    }

    /// Takes back what was added to the gate's config, unless another client is led to it, and then what was written down: what
    /// fails before that can be tried again.
    fn forget(&mut self, place: &Path, moved: &Moved) -> io::Result<()> {
        if let Some(path) = &moved.gate {
            self.take_back(path, place, moved)?;
        }
        gone(place)?;
        gone(&moved.backup)
    }

    /// Takes back what was added to the gate's config at `path` for what is written down at `place`.
    fn take_back(&mut self, path: &Path, place: &Path, moved: &Moved) -> io::Result<()> {
        let mut others = vec![];
        for entry in fs::read_dir(&self.state)?.flatten().map(|entry| entry.path()) {
            if entry != place && entry.extension().is_some_and(|extension| extension == "json") {
                others.extend(
                    Moved::read(&entry)?.into_iter().flat_map(|moved| moved.servers).filter_map(|server| server.upstream),
                );
            }
        }
        let (mut gate, mut secrets) = (GateConfig::read(path)?, vec![]);
        for server in moved.servers.iter().filter(|server| !server.block.is_empty()) {
            let name = server.upstream.as_deref().unwrap_or_default();
            if others.iter().any(|other| other == name) {
                continue;
            }
            if gate.remove(&server.block) || !gate.has(name) {
                secrets.extend(&server.secrets);
            } else {
                writeln!(self.err, "`[upstream.{name}]` of {} was changed since, and stays", path.display())?;
            }
        }
        if gate.new.trim().is_empty() {
            gone(path)?
        } else {
            self.write_gate(&gate)?
        }
        secrets.into_iter().try_for_each(|secret| gone(secret))
    }

    /// What is written down of the clients that are meant.
    fn installed(&self, args: &UninstallArgs) -> io::Result<Vec<(ConfigFile, PathBuf, Moved)>> {
        let Ok(entries) = fs::read_dir(&self.state) else {
            return Ok(vec![]);
        };
        let mut places: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        places.retain(|place| place.extension().is_some_and(|extension| extension == "json"));
        places.sort();
        let mut out = vec![];
        for place in places {
            let stem = place.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let name = stem.rsplit_once('-').map_or(stem, |(name, _)| name);
            let Ok(client) = <Client as clap::ValueEnum>::from_str(name, false) else {
                continue;
            };
            let Some(moved) = Moved::read(&place)? else {
                continue;
            };
            let Some(file) = ConfigFile::named(client, &moved.file, &self.places) else {
                continue;
            };
            let named = args.file.as_ref().map(std::path::absolute).transpose()?;
            if args.client.is_none_or(|wanted| wanted == client) && named.is_none_or(|named| named == file.path) {
                out.push((file, place, moved));
            }
        }
        Ok(out)
    }
}

/// Removes a file that may be gone already.
fn gone(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(io::Error::new(error.kind(), format!("`{}` cannot be removed: {error}", path.display())))
        }
        _ => Ok(()),
    }
}
