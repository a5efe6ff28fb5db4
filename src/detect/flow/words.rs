//! Words in a row: phrases, and the first words of commands.

use std::collections::VecDeque;

use super::hash::{base, finish, hash};
use super::piece::{Found, Look, Piece, offset, tell};

/// Words of a phrase, and letters in them, at the least: where words are short, more of them make one.
const WORDS: usize = 6;
const LETTERS: usize = 24;
/// Of so many phrases that follow each other, one is learnt, the same one wherever they stand (winnowing).
const WINDOW: usize = 4;
/// Longest part of a word that counts, in bytes.
const WORD_BYTES: usize = 64;
/// Words of a command.
const COMMAND_WORDS: usize = 4;
/// So much of a line is read as a command, in bytes.
const LINE_BYTES: usize = 512;

/// Programs that texts tell readers to run. Sorted.
const PROGRAMS: [&str; 74] = [
    "apt",
    "apt-get",
    "aws",
    "az",
    "base64",
    "bash",
    "brew",
    "bun",
    "bunx",
    "cargo",
    "cat",
    "certutil",
    "chmod",
    "chown",
    "cmd",
    "composer",
    "cp",
    "crontab",
    "curl",
    "dd",
    "del",
    "dnf",
    "docker",
    "echo",
    "export",
    "find",
    "ftp",
    "gcloud",
    "gem",
    "gh",
    "git",
    "go",
    "gpg",
    "helm",
    "iex",
    "iwr",
    "kill",
    "kubectl",
    "make",
    "mkfs",
    "mv",
    "mysql",
    "nc",
    "ncat",
    "node",
    "npm",
    "npx",
    "openssl",
    "perl",
    "php",
    "pip",
    "pip3",
    "pipx",
    "pnpm",
    "powershell",
    "printf",
    "psql",
    "pwsh",
    "python",
    "python3",
    "reg",
    "rm",
    "rsync",
    "ruby",
    "scp",
    "sh",
    "ssh",
    "sudo",
    "systemctl",
    "tar",
    "terraform",
    "uvx",
    "wget",
    "yarn",
];

/// Whether a word may begin a command.
pub(super) fn is_program(word: &str) -> bool {
    word.len() <= 10 && PROGRAMS.binary_search(&word).is_ok()
}

/// Hands out the command whose first word stands at `start`, if it is one: words alone are prose.
pub(super) fn command(text: &str, start: usize, take: &mut dyn FnMut(Found<'_>)) {
    let line = crate::text::cut(text.get(start..).unwrap_or_default(), LINE_BYTES).lines().next().unwrap_or_default();
    let mut words: Vec<&str> = Vec::with_capacity(COMMAND_WORDS);
    let mut end = start;
    for word in line.split_ascii_whitespace().take(COMMAND_WORDS) {
        let bare = word.trim_matches(['"', '\'', '`', ',', '(', ')']).trim_end_matches([';', '.', '!', '?', ':']);
        if bare.is_empty() {
            break;
        }
        words.push(bare);
        end = start + offset(line, word) + word.len();
        if word.ends_with(['`', ';', ')', '.', '!']) && words.len() > 1 {
            break;
        }
    }
    let written = |word: &&str| word.bytes().any(|byte| !byte.is_ascii_alphabetic() && byte < 0x80);
    if words.len() < 3 || !words.iter().skip(1).any(|word| written(word)) {
        return;
    }
    let mut joined = words.join(" ");
    // Options alone are everybody's; with what they are applied to, they are not.
    let third = words.get(2).is_some_and(|word| !word.starts_with('-'));
    tell_whole(&joined, start..end, take);
    if words.len() > 3 && third {
        let last = words.last().map_or(0, |word| word.len() + 1);
        joined.truncate(joined.len().saturating_sub(last));
        tell_whole(&joined, start..end, take);
    }
}

fn tell_whole(command: &str, span: std::ops::Range<usize>, take: &mut dyn FnMut(Found<'_>)) {
    tell(Piece::Command, command, span, take);
}

struct Word {
    hash: u64,
    start: usize,
    letters: usize,
}

/// Hands out phrases. Each begins with a word and reaches as far as it needs to be one, so that the same words make the same
/// phrase wherever they stand.
pub(super) fn phrases(text: &str, look: Look, take: &mut dyn FnMut(Found<'_>)) {
    let factor = base();
    let powers: [u64; LETTERS + 1] = {
        let mut power = 1_u64;
        std::array::from_fn(|_| {
            let this = power;
            power = power.wrapping_mul(factor);
            this
        })
    };
    let mut row: VecDeque<Word> = VecDeque::with_capacity(LETTERS + 1);
    let (mut sum, mut letters) = (0_u64, 0);
    let mut winnow = Winnow::default();
    words(text, |start, end, weight| {
        let word = text.get(start..end).unwrap_or_default();
        let hash = hash(0, crate::text::cut(word, WORD_BYTES).as_bytes());
        sum = sum.wrapping_mul(factor).wrapping_add(hash);
        letters += weight;
        row.push_back(Word { hash, start, letters: weight });
        while row.len() >= WORDS && letters >= LETTERS {
            let phrase = finish(sum ^ row.len() as u64);
            let Some(first) = row.pop_front() else { return };
            let power = powers.get(row.len()).copied().unwrap_or(0);
            sum = sum.wrapping_sub(first.hash.wrapping_mul(power));
            letters -= first.letters;
            let span = first.start..end;
            let chosen = if look == Look::Some { winnow.chosen(phrase) } else { Some(phrase) };
            if let Some(hash) = chosen {
                take(Found { piece: Piece::Phrase, hash, text: text.get(span.clone()).unwrap_or_default(), span });
            }
        }
    });
}

/// Chooses among phrases that follow each other (Schleimer, Wilkerson and Aiken, "Winnowing", 2003).
#[derive(Default)]
struct Winnow {
    window: VecDeque<u64>,
    last: Option<u64>,
}

impl Winnow {
    fn chosen(&mut self, phrase: u64) -> Option<u64> {
        self.window.push_back(phrase);
        if self.window.len() < WINDOW {
            // The first of a short text counts.
            return (self.window.len() == 1).then_some(phrase);
        }
        let least = self.window.iter().copied().min();
        self.window.pop_front();
        if least == self.last {
            return None;
        }
        self.last = least;
        least
    }
}

/// Tells where words stand, and how many letters they count for. Scripts without blanks between words have each character as
/// a word, and it counts for two.
fn words(text: &str, mut take: impl FnMut(usize, usize, usize)) {
    let mut open: Option<(usize, usize)> = None;
    for (at, c) in text.char_indices() {
        let letter = if c.is_ascii() { c.is_ascii_alphanumeric() } else { c.is_alphanumeric() };
        let single = !c.is_ascii() && is_single(c);
        if letter && !single {
            let (start, letters) = open.unwrap_or((at, 0));
            open = Some((start, letters + 1));
            continue;
        }
        if let Some((start, letters)) = open.take() {
            take(start, at, letters);
        }
        if single {
            take(at, at + c.len_utf8(), 2);
        }
    }
    if let Some((start, letters)) = open {
        take(start, text.len(), letters);
    }
}

fn is_single(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0e7f}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{20000}'..='\u{2ffff}')
}
