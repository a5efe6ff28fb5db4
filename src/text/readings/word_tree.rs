//! A prefix tree of words.

use super::vocabulary::UNSURE;

/// Number of letters that words consist of.
const LETTERS: usize = 26;

/// The nodes. The root is the first; no link leads to it, so that 0 means that there is no link.
pub(super) struct Tree(Vec<Node>);

#[derive(Clone, Copy, Default)]
struct Node {
    next: [u16; LETTERS],
    is_word: bool,
    /// Length of the longest word that continues or ends here.
    longest: usize,
}

impl Tree {
    /// Creates a tree of words in the letters from a to z. Other words are left out.
    pub(super) fn new<'w>(words: impl Iterator<Item = &'w str>) -> Self {
        let mut tree = Self(vec![Node::default()]);
        words
            .filter(|word| word.bytes().all(|b| b.is_ascii_lowercase()))
            .for_each(|word| tree.add(word));
        tree
    }

    fn add(&mut self, word: &str) {
        let mut at = 0;
        for letter in word.bytes() {
            let new = self.0.len();
            let Some(link) = self
                .0
                .get_mut(at)
                .and_then(|node| node.next.get_mut(index(letter)))
            else {
                return;
            };
            if *link == 0 {
                let Ok(child) = u16::try_from(new) else {
                    return;
                };
                *link = child;
                self.0.push(Node::default());
            }
            at = usize::from(self.next(at, letter));
            if let Some(node) = self.0.get_mut(at) {
                node.longest = node.longest.max(word.len());
            }
        }
        if let Some(node) = self.0.get_mut(at) {
            node.is_word = true;
        }
    }

    /// Returns the child of a node for a letter; 0 if it has no such child.
    fn next(&self, node: usize, letter: u8) -> u16 {
        self.0
            .get(node)
            .and_then(|node| node.next.get(index(letter)))
            .copied()
            .unwrap_or_default()
    }
}

/// Returns the index of a letter among the links of a node; out of range for any other byte.
fn index(letter: u8) -> usize {
    usize::from(letter.wrapping_sub(b'a'))
}

/// The nodes that the letters so far lead to. A `1` stands for `i` and for `l`; at most [`UNSURE`]
/// of them are followed.
pub(super) struct Paths<'t> {
    tree: &'t Tree,
    nodes: [u16; 1 << UNSURE],
    count: usize,
    unsure: usize,
}

impl<'t> Paths<'t> {
    pub(super) fn new(tree: &'t Tree) -> Self {
        Self {
            tree,
            nodes: [0; 1 << UNSURE],
            count: 1,
            unsure: 0,
        }
    }

    /// Continues with a letter. Returns whether a word can still result.
    pub(super) fn follow(&mut self, letter: u8) -> bool {
        let letters: &[u8] = match letter {
            b'1' if self.unsure == UNSURE => &[],
            b'1' => b"il",
            _ => &[letter],
        };
        self.unsure += usize::from(letter == b'1');
        let previous = self.nodes;
        let mut count = 0;
        for node in previous.iter().take(self.count) {
            for letter in letters {
                let next = self.tree.next(usize::from(*node), *letter);
                if let Some(slot) = self.nodes.get_mut(count).filter(|_| next != 0) {
                    *slot = next;
                    count += 1;
                }
            }
        }
        self.count = count;
        count > 0
    }

    /// Reports whether the letters so far are a word.
    pub(super) fn is_word(&self) -> bool {
        self.reached_nodes().any(|node| node.is_word)
    }

    /// Returns the length of the longest word that begins with the letters so far.
    pub(super) fn longest(&self) -> usize {
        self.reached_nodes()
            .map(|node| node.longest)
            .max()
            .unwrap_or_default()
    }

    fn reached_nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes
            .iter()
            .take(self.count)
            .filter_map(|node| self.tree.0.get(usize::from(*node)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn followed<'t>(tree: &'t Tree, letters: &str) -> Option<Paths<'t>> {
        let mut paths = Paths::new(tree);
        letters
            .bytes()
            .all(|letter| paths.follow(letter))
            .then_some(paths)
    }

    #[test]
    fn letters_lead_to_words() {
        let tree = Tree::new(["all", "ill", "illicit", "über"].into_iter());
        let read = |letters: &str| {
            followed(&tree, letters).map(|paths| (paths.is_word(), paths.longest()))
        };
        assert_eq!(read("il"), Some((false, 7)));
        assert_eq!(read("a11"), Some((true, 3)));
        assert_eq!(read("111"), Some((true, 7)));
        assert_eq!(read("1111"), Some((false, 7)));
        assert_eq!(read("11111"), None, "more letters than may be one of two");
        assert_eq!(read("al2"), None);
        assert_eq!(read("ü"), None);
    }
}
