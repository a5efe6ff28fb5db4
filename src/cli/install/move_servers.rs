//! Moves servers behind the gate.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::client::{Client, ConfigFile, Format};
use super::files::{add_mark, lock_state, replace_file};
use super::gate::{GateConfig, default_audit_file, new_config};
use super::move_record::{MoveRecord, MovedServer, digest};
use super::names::Names;
use super::plan::{self, Plan, PlanInputs, Wrap};
use super::records::{Leftovers, Records};
use super::server::GateEntry;
use super::{InstallArgs, InstallContext, diff, read};
use crate::cli::format_count;

/// The inputs that are the same for all files.
struct MoveContext<'a> {
    args: &'a InstallArgs,
    wrap: Wrap,
    gate_entry: GateEntry,
    /// The initial text of a new config of the gate.
    base: String,
}

/// A planned change of a file.
pub(super) struct FileChange {
    pub(super) file: ConfigFile,
    /// The current text, and the text without lychgate.
    text: String,
    original: String,
    pub(super) plan: Plan,
    place: PathBuf,
    /// Whether the change requires a change of the gate's config.
    is_for_gate: bool,
}

impl InstallContext<'_> {
    /// Runs `install`.
    pub(super) fn install(&mut self, args: &InstallArgs) -> io::Result<u8> {
        let config = args
            .config
            .clone()
            .unwrap_or_else(|| self.gate_config.clone());
        let mut gate = GateConfig::read(&config)?;
        let Some(client) = args.client else {
            let gate_entry = Records::read(&self.state)?.gate_entry(&gate, &self.program);
            return self.list(&gate_entry, args.json);
        };
        let wrap = self.wrap(args, &gate)?;
        let _lock = if args.dry_run {
            None
        } else {
            fs::create_dir_all(&self.state)?;
            Some(lock_state(&self.state)?)
        };
        let mut records = Records::read(&self.state)?;
        let gate_entry = records.gate_entry(&gate, &self.program);
        let job = MoveContext {
            args,
            wrap,
            gate_entry,
            base: new_config("install", &self.state_root),
        };
        let mut code = 0;
        let mut steps = vec![];
        let files = self.files(client, args.file.as_ref())?;
        for file in &files {
            if let Some(text) = read(file)? {
                let step = plan_step(file.clone(), text, &job, &mut gate, &mut records)?;
                for (name, why) in &step.plan.skipped {
                    writeln!(
                        self.err,
                        "left unchanged: `{}` of {}: {why}",
                        name.escape_debug(),
                        step.file.path.display()
                    )?;
                    code = 1;
                }
                steps.push(step);
            }
        }
        let leftovers = release(&steps, &mut gate, &mut records);
        for name in &leftovers.changed_upstreams {
            writeln!(
                self.err,
                "`[upstream.{name}]` of {} was changed since, and is kept",
                gate.path.display()
            )?;
        }
        if !self.has_all_named(client, args, &steps)? {
            return Ok(2);
        }
        if steps
            .iter()
            .all(|step| step.plan.text == step.text && !step.is_for_gate)
        {
            self.explain_nothing_to_do(client, &files, &steps)?;
            return Ok(code);
        }
        steps.retain(|step| step.plan.text != step.text || step.is_for_gate);
        for FileChange {
            file, text, plan, ..
        } in steps.iter().filter(|step| step.plan.text != step.text)
        {
            write!(
                self.out,
                "{}",
                diff::diff(&file.path, file.format, text, &plan.text)
            )?;
        }
        for FileChange { file, plan, .. } in &steps {
            if file.project.is_some() && plan.moved.iter().any(|server| server.upstream.is_none()) {
                let path = file.path.display();
                let program = &self.program;
                writeln!(
                    self.err,
                    "warning: `{path}` belongs to a project and will contain paths of this machine: the program `{program}` and the audit log\n  hint: keep the change out of version control, or move the servers of your user config instead"
                )?;
            }
        }
        if gate.is_changed() {
            let format = Format::Toml { servers: "" };
            write!(
                self.out,
                "{}",
                diff::diff(
                    &gate.path,
                    format,
                    gate.old.as_deref().unwrap_or_default(),
                    &gate.new
                )
            )?;
        }
        if args.dry_run || !(self.confirm)(self.err)? {
            return Ok(1);
        }
        self.carry_out(&steps, &gate, &mut records, &leftovers)?;
        writeln!(self.err, "Done; {}.", client.restart())?;
        self.show_state(args, &steps, &gate, &job.wrap)?;
        writeln!(
            self.err,
            "To restore it: lychgate uninstall {}",
            client.name()
        )?;
        Ok(code)
    }

    /// Reports whether all named items exist; otherwise prints the existing ones.
    fn has_all_named(
        &mut self,
        client: Client,
        args: &InstallArgs,
        steps: &[FileChange],
    ) -> io::Result<bool> {
        if let (Some(file), []) = (&args.file, steps) {
            let existing = self
                .files(client, None)?
                .into_iter()
                .filter(|file| file.path.exists());
            let existing_list = existing
                .map(|file| format!("`{}`", file.path.display()))
                .collect::<Vec<_>>()
                .join(", ");
            let hint = if existing_list.is_empty() {
                "there is none of its own either".to_owned()
            } else {
                format!("there is {existing_list}")
            };
            writeln!(
                self.err,
                "`{}` does not exist\n  hint: {hint}",
                file.display()
            )?;
            return Ok(false);
        }
        let names: BTreeSet<_> = steps
            .iter()
            .flat_map(|step| step.plan.names.iter().map(String::as_str))
            .collect();
        let mut has_all = true;
        for unknown in args
            .servers
            .iter()
            .filter(|name| !names.contains(name.as_str()))
        {
            has_all = false;
            writeln!(
                self.err,
                "{} has no server `{}`",
                client.name(),
                unknown.escape_debug()
            )?;
        }
        if !has_all {
            let names = names
                .iter()
                .map(|name| format!("`{}`", name.escape_debug()))
                .collect::<Vec<_>>()
                .join(", ");
            writeln!(
                self.err,
                "  hint: {}",
                if names.is_empty() {
                    "it has none".to_owned()
                } else {
                    format!("it has {names}")
                }
            )?;
        }
        Ok(has_all)
    }

    /// Prints why there is nothing to do.
    fn explain_nothing_to_do(
        &mut self,
        client: Client,
        files: &[ConfigFile],
        changes: &[FileChange],
    ) -> io::Result<()> {
        let list = |files: &mut dyn Iterator<Item = &ConfigFile>| {
            files
                .map(|file| file.path.display().to_string())
                .collect::<Vec<_>>()
                .join(", ")
        };
        let client = client.name();
        let plans = || changes.iter().map(|step| &step.plan);
        if changes.is_empty() {
            writeln!(
                self.err,
                "nothing to move: {client} has no config; its path would be {}",
                list(&mut files.iter())
            )
        } else if plans().all(|plan| plan.names.is_empty()) {
            writeln!(
                self.err,
                "nothing to move: {client} has no servers in {}",
                list(&mut changes.iter().map(|step| &step.file))
            )
        } else if plans().any(|plan| !plan.skipped.is_empty()) {
            writeln!(self.err, "nothing else to move for {client}")
        } else {
            writeln!(
                self.err,
                "nothing to move: the servers of {client} are already behind the gate"
            )
        }
    }

    fn wrap(&self, args: &InstallArgs, gate: &GateConfig) -> io::Result<Wrap> {
        let mut options = vec![];
        // `wrap` finds the user's config by default.
        if gate.path != self.user_config {
            options.extend(["--config".to_owned(), gate.path.display().to_string()]);
        }
        options.extend(
            args.policy
                .iter()
                .flat_map(|policy| ["--policy".to_owned(), policy.clone()]),
        );
        let audit = match &args.audit {
            Some(audit) => std::path::absolute(audit)?,
            None => gate
                .audit_file()
                .unwrap_or_else(|| default_audit_file(&self.state_root)),
        };
        options.extend(["--audit".to_owned(), audit.display().to_string()]);
        Ok(Wrap {
            program: self.program.clone(),
            options,
            audit,
        })
    }

    fn files(&self, client: Client, argument: Option<&PathBuf>) -> io::Result<Vec<ConfigFile>> {
        match argument {
            None => Ok(client.files(&self.places)),
            Some(path) => ConfigFile::from_path(client, path, &self.places)
                .map(|file| vec![file])
                .ok_or_else(|| {
                    io::Error::other(format!("`{}` is not a valid path", path.display()))
                }),
        }
    }

    /// Writes how to restore everything first, then what the gate needs, then the clients' files.
    /// If this is interrupted at any point, `uninstall` finds what it has to undo.
    fn carry_out(
        &mut self,
        steps: &[FileChange],
        gate: &GateConfig,
        records: &mut Records,
        leftovers: &Leftovers,
    ) -> io::Result<()> {
        for step in steps {
            step.check_unchanged()?;
        }
        for FileChange {
            file,
            original: own,
            place,
            ..
        } in steps
        {
            replace_file(&backup(place), &add_mark(&file.path, own)?, Some(0o600))?;
            records.write(place)?;
        }
        records.write_unwritten()?;
        gate.write()?;
        leftovers.remove_secrets(gate)?;
        for step in steps {
            let FileChange {
                file, plan, place, ..
            } = step;
            step.check_unchanged()?;
            if plan.text != step.text {
                replace_file(&file.path, &add_mark(&file.path, &plan.text)?, None)?;
            }
            records.forget_dropped(place)?;
            let path = file.path.display();
            let backup_path = backup(place);
            writeln!(
                self.err,
                "{path}: {} behind the gate; backup: {}",
                format_count(plan.moved.len(), "server"),
                backup_path.display()
            )?;
        }
        Ok(())
    }
}

impl FileChange {
    /// Clients also write their files: a file is written only if it has not changed since the diff
    /// was shown.
    fn check_unchanged(&self) -> io::Result<()> {
        if read(&self.file)?.as_ref() == Some(&self.text) {
            return Ok(());
        }
        let message = format!(
            "`{}` was changed in the meantime; nothing was written to it\n  hint: try again",
            self.file.path.display()
        );
        Err(io::Error::other(message))
    }
}

/// Plans the change of a file and enters it in the records, which are not written yet.
fn plan_step(
    file: ConfigFile,
    text: String,
    job: &MoveContext<'_>,
    gate: &mut GateConfig,
    records: &mut Records,
) -> io::Result<FileChange> {
    let place = records.place(&file);
    let mut previous = records.get(&place).cloned().unwrap_or_default();
    if let Some(other) = previous.gate.take_if(|other| *other != gate.path) {
        let client = file.client.name();
        let other = other.display();
        let message = format!(
            "the servers of {client} are in `{other}`\n  hint: `--config {other}`, or `lychgate uninstall {client}` first"
        );
        return Err(io::Error::other(message));
    }
    // The text without lychgate, so that the backup is complete.
    let original = previous.restore(&text, file.format).text;
    let was_moved = |name: &str| previous.servers.iter().any(|server| server.name() == name);
    let servers = &job.args.servers;
    let is_wanted = |name: &str| {
        servers.is_empty() || servers.iter().any(|wanted| wanted == name) || was_moved(name)
    };
    let gate_before = gate.new.clone();
    let inputs = PlanInputs {
        wrap: &job.wrap,
        gate_entry: &job.gate_entry,
        previous: &previous.servers,
        base: &job.base,
    };
    let mut names = Names::read(records);
    let plan =
        plan::plan(&file, &original, &inputs, gate, &mut names, is_wanted).map_err(|why| {
            io::Error::other(format!("`{}` cannot be read: {why}", file.path.display()))
        })?;
    let is_needed = |server: &MovedServer| {
        plan.moved
            .iter()
            .any(|moved| !moved.block.is_empty() && moved.upstream == server.upstream)
    };
    let mut dropped = previous.dropped;
    dropped.extend(
        previous
            .servers
            .into_iter()
            .filter(|server| !server.block.is_empty()),
    );
    dropped.retain(|server| !is_needed(server));
    let is_for_gate = gate.new != gate_before || !dropped.is_empty();
    let has_any = !plan.moved.is_empty() || dropped.iter().any(|server| server.upstream.is_some());
    let base = gate.base.clone().or_else(|| records.base(&gate.path));
    let record = MoveRecord {
        file: file.path.clone(),
        backup: backup(&place),
        written_sha256: digest(plan.text.as_bytes()),
        found_sha256: digest(text.as_bytes()),
        servers: plan.moved.clone(),
        dropped,
        gate: has_any.then(|| gate.path.clone()),
        base,
    };
    records.set(&place, record);
    Ok(FileChange {
        file,
        text,
        original,
        plan,
        place,
        is_for_gate,
    })
}

/// Removes from the gate's config what no file needs any more.
fn release(steps: &[FileChange], gate: &mut GateConfig, records: &mut Records) -> Leftovers {
    let mut leftovers = Leftovers::default();
    for FileChange { place, .. } in steps {
        let dropped = records
            .get(place)
            .map(|moved| moved.dropped.clone())
            .unwrap_or_default();
        dropped
            .iter()
            .for_each(|server| records.release(server, gate, &mut leftovers));
    }
    leftovers
}

/// Returns the path of the backup of a file.
fn backup(place: &Path) -> PathBuf {
    place.with_extension("before")
}
