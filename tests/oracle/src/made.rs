//! Random scripts that use every construct of the shell, with plain words.

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        from[self.below(from.len())]
    }
}

const PROGRAMS: [&str; 10] = [
    "ls", "mytool", "make2", "git", "prog-a", "./run", "x/y", "build", "check", "id",
];
const WORDS: [&str; 12] = [
    "-a", "--long", "file", "a/b", "-n", "12", "x=1", "a.txt", "-", "one", "two", "+x",
];
const JOINS: [&str; 7] = ["; ", "\n", " && ", " || ", " | ", " & ", " |& "];

/// Returns a script of up to four commands and groups, with groups nested up to three deep.
pub fn script(random: &mut Random) -> String {
    list(random, 3)
}

fn list(random: &mut Random, depth: usize) -> String {
    let mut out = command(random, depth);
    for _ in 0..random.below(4) {
        out += random.pick(&JOINS);
        out += &command(random, depth);
    }
    out
}

fn command(random: &mut Random, depth: usize) -> String {
    if depth == 0 {
        return simple(random);
    }
    let mut inner = || list(random, depth - 1);
    let a = inner();
    let b = inner();
    let c = inner();
    match random.below(16) {
        0 => format!("( {a} )"),
        1 => format!("{{ {a}\n}}"),
        2 => format!("if {a}\nthen {b}\nelse {c}\nfi"),
        3 => format!("if {a}\nthen {b}\nfi > out"),
        4 => format!("while {a}\ndo {b}\ndone"),
        5 => format!("for v in one two\ndo {a}\ndone"),
        6 => format!("case one in one|two) {a}\n;;\n*) {b}\n;; esac"),
        7 => format!("f{}() {{ {a}\n}}", random.below(9)),
        8 => format!("until {a}\ndo {b}\ndone < in"),
        _ => simple(random),
    }
}

fn simple(random: &mut Random) -> String {
    let mut out = String::new();
    if random.below(8) == 0 {
        out += "V=1 ";
    }
    out += random.pick(&PROGRAMS);
    for _ in 0..random.below(4) {
        out += random.pick(&[" ", " ", "  ", " \\\n "]);
        out += random.pick(&WORDS);
    }
    out += random.pick(&[
        "",
        "",
        "",
        "",
        " > out",
        " 2>&1",
        " < in",
        " >> log",
        " &> all",
        " 2> /dev/null",
        " <<< text",
    ]);
    out
}
