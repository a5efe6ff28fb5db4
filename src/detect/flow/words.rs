//! Consecutive words: phrases, and the first words of commands.

use std::collections::VecDeque;

use super::hash::Mixer;
use super::piece::{FoundPiece, Look, Piece, emit, offset};

/// Minimum number of words of a phrase, and of letters in them: if the words are short, a phrase
/// has more of them.
const WORDS: usize = 6;
const LETTERS: usize = 24;
/// One phrase out of this many consecutive ones is learned, and it is the same one wherever they
/// occur (winnowing).
const WINDOW: usize = 4;
/// Characters that join the parts of words, addresses, links and numbers.
const JOINS: [u8; 15] = *b"/.:-_@?=&#%+~'\\";
/// Maximum number of words of a command.
const COMMAND_WORDS: usize = 4;
/// Maximum part of a line that is read as a command, in bytes.
const LINE_BYTES: usize = 512;

/// Programs that texts instruct readers to run. Sorted.
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

/// Length of the longest of them, in bytes.
pub(super) const PROGRAM_BYTES: usize = 10;

/// Reports whether a word may begin a command.
pub(super) fn is_program(word: &str) -> bool {
    PROGRAMS.binary_search(&word).is_ok()
}

/// Passes the command whose first word is at `start` to `take`, if it is one: words alone are
/// prose.
pub(super) fn command(text: &str, start: usize, take: &mut dyn FnMut(FoundPiece<'_>)) {
    let line = crate::text::cut(text.get(start..).unwrap_or_default(), LINE_BYTES)
        .lines()
        .next()
        .unwrap_or_default();
    let mut words: Vec<&str> = Vec::with_capacity(COMMAND_WORDS);
    let mut end = start;
    for word in line.split_ascii_whitespace().take(COMMAND_WORDS) {
        let bare = word
            .trim_matches(['"', '\'', '`', ',', '(', ')'])
            .trim_end_matches([';', '.', '!', '?', ':']);
        if bare.is_empty() {
            break;
        }
        words.push(bare);
        end = start + offset(line, word) + word.len();
        if word.ends_with(['`', ';', ')', '.', '!']) && words.len() > 1 {
            break;
        }
    }
    let has_symbols = |word: &&str| {
        word.bytes()
            .any(|byte| !byte.is_ascii_alphabetic() && byte < 0x80)
    };
    if words.len() < 3 || !words.iter().skip(1).any(has_symbols) {
        return;
    }
    let mut joined = words.join(" ");
    // Options alone are common; together with their operands, they are distinctive.
    let third_is_operand = words.get(2).is_some_and(|word| !word.starts_with('-'));
    emit_command(&joined, start..end, take);
    if words.len() > 3 && third_is_operand {
        let last = words.last().map_or(0, |word| word.len() + 1);
        joined.truncate(joined.len().saturating_sub(last));
        emit_command(&joined, start..end, take);
    }
}

fn emit_command(command: &str, span: std::ops::Range<usize>, take: &mut dyn FnMut(FoundPiece<'_>)) {
    emit(Piece::Command, command, span, take);
}

/// Maximum number of words that are examined as one phrase: parts of addresses and links only count
/// towards this maximum.
const ROW: usize = 48;

struct Word {
    hash: u64,
    start: usize,
    letters: usize,
    /// Whether it is a word by itself, not a further part of an address, a link or a number.
    whole: bool,
}

/// Passes phrases to `take`. Each begins with a word and is only as long as a phrase needs to be,
/// so that the same words form the same phrase wherever they occur.
pub(super) fn phrases(text: &str, look: Look, take: &mut dyn FnMut(FoundPiece<'_>)) {
    let mixer = Mixer::new();
    let powers: [u64; ROW + 1] = {
        let mut power = 1_u64;
        std::array::from_fn(|_| {
            let current = power;
            power = power.wrapping_mul(mixer.factor());
            current
        })
    };
    let mut row: VecDeque<Word> = VecDeque::with_capacity(ROW + 1);
    let mut sum = 0_u64;
    let mut letters = 0;
    let mut whole_words = 0;
    let mut winnow = Winnow::default();
    words(text, &mixer, |word, end| {
        sum = sum.wrapping_mul(mixer.factor()).wrapping_add(word.hash);
        letters += word.letters;
        whole_words += usize::from(word.whole);
        row.push_back(word);
        while whole_words >= WORDS && letters >= LETTERS || row.len() >= ROW {
            let is_phrase = whole_words >= WORDS && letters >= LETTERS;
            let phrase = mixer.finish(sum ^ row.len() as u64);
            let Some(first) = row.pop_front() else { return };
            let power = powers.get(row.len()).copied().unwrap_or(0);
            sum = sum.wrapping_sub(first.hash.wrapping_mul(power));
            letters -= first.letters;
            whole_words -= usize::from(first.whole);
            if !is_phrase || !first.whole {
                continue;
            }
            let selected = if look == Look::Some {
                winnow.select(phrase)
            } else {
                Some(phrase)
            };
            if let Some(hash) = selected {
                let span = first.start..end;
                take(FoundPiece {
                    piece: Piece::Phrase,
                    hash,
                    text: text.get(span.clone()).unwrap_or_default(),
                    span,
                });
            }
        }
    });
}

/// Selects among consecutive phrases (Schleimer, Wilkerson and Aiken, "Winnowing", 2003).
#[derive(Default)]
struct Winnow {
    window: VecDeque<u64>,
    last: Option<u64>,
}

impl Winnow {
    fn select(&mut self, phrase: u64) -> Option<u64> {
        self.window.push_back(phrase);
        if self.window.len() < WINDOW {
            // The first phrase of a short text is selected.
            return (self.window.len() == 1).then_some(phrase);
        }
        let minimum = self.window.iter().copied().min();
        self.window.pop_front();
        if minimum == self.last {
            return None;
        }
        self.last = minimum;
        minimum
    }
}

/// Passes words to `take`, with their end offsets. In scripts without spaces between words, each
/// character is a word and counts as two letters.
fn words(text: &str, mixer: &Mixer, mut take: impl FnMut(Word, usize)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut before = b' ';
    while let Some(byte) = bytes.get(at).copied() {
        if !(byte.is_ascii_alphanumeric() || byte >= 0x80) {
            before = byte;
            at += 1;
            continue;
        }
        let start = at;
        let mut letters = 0;
        let mut state = 0;
        let mut chunk = 0_u64;
        while let Some(byte) = bytes.get(at).copied() {
            if byte.is_ascii_alphanumeric() {
                at += 1;
            } else if byte >= 0x80 {
                let c = text
                    .get(at..)
                    .and_then(|rest| rest.chars().next())
                    .unwrap_or(' ');
                let single = is_single(c);
                if !c.is_alphanumeric() || single && letters > 0 {
                    break;
                }
                at += c.len_utf8();
                chunk = chunk.rotate_left(11) ^ u64::from(u32::from(c));
                if single {
                    letters = 2;
                    break;
                }
            } else {
                break;
            }
            chunk = chunk << 8 ^ chunk >> 56 ^ u64::from(byte);
            letters += 1;
            if letters % 8 == 0 {
                state = mixer.mix(state ^ chunk);
                chunk = 0;
            }
        }
        if letters > 0 {
            let hash = mixer.mix(state ^ chunk ^ (at - start) as u64);
            take(
                Word {
                    hash,
                    start,
                    letters,
                    whole: !JOINS.contains(&before),
                },
                at,
            );
            before = b' ';
        } else {
            // A sign, not a letter.
            before = b' ';
            at += text
                .get(at..)
                .and_then(|rest| rest.chars().next())
                .map_or(1, char::len_utf8);
        }
    }
}

fn is_single(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0e7f}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{20000}'..='\u{2ffff}')
}
