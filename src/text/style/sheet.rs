//! The style sheets of a page, and the style that they and an element's own style attribute give
//! it.

use std::collections::HashMap;

use super::declare::{Block, Declaration, declare, is_known_property};
use super::look::OwnStyle;
use super::media::holds;
use super::motion::Motions;
use super::scan::{decode, until};
use super::select::{Matches, Selector, Tree};
use super::vars::Vars;
use crate::text::cut;

/// Maximum number of rules of a page that are kept.
const RULES: usize = 20_000;
/// Maximum depth of nested blocks that are read.
const DEPTH: usize = 32;
/// Maximum number of selectors that a nested rule may expand to, and their maximum length in bytes.
const SELECTORS: usize = 256;
const SELECTOR_BYTES: usize = 1000;
/// Maximum number of layers that are distinguished, and the position of rules outside all of them.
const LAYERS: usize = 120;
const UNLAYERED: u64 = 127;
/// Maximum number of style sheets that others import.
const IMPORTS: usize = 8;
/// Maximum number of matching steps for a page: a number for each of its bytes, plus a fixed
/// number.
const STEPS_PER_BYTE: usize = 20;
const STEPS: usize = 200_000;

/// The style sheets of a page, and its open elements.
#[derive(Debug)]
pub(crate) struct Sheet {
    /// Whether a limit was reached: hidden content can no longer be distinguished from visible
    /// content.
    pub(crate) exhausted: bool,
    /// Whether a selector refers to attributes.
    pub(crate) wants_attributes: bool,
    /// Whether styles are loaded from elsewhere.
    pub(crate) linked: bool,
    tree: Tree,
    vars: Vars,
    blocks: Vec<Block>,
    rules: Vec<Rule>,
    keyed: HashMap<u64, Vec<usize>>,
    general: Vec<usize>,
    motions: Motions,
    layers: Vec<String>,
    imports: usize,
    steps: usize,
}

#[derive(Debug)]
struct Rule {
    selector: Selector,
    rank: u64,
    block: usize,
    sure: bool,
}

/// A block that is being read.
struct OpenBlock {
    /// The selectors of the rule, or of the enclosing rule; empty outside of rules.
    selectors: Vec<String>,
    block: Block,
    sure: bool,
    /// The enclosing layer, and its position in the order of layers.
    layer: Option<(String, u64)>,
}

impl Sheet {
    /// Creates an instance for a page of `bytes` bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            exhausted: false,
            wants_attributes: false,
            linked: false,
            tree: Tree::default(),
            vars: Vars::default(),
            blocks: Vec::new(),
            rules: Vec::new(),
            keyed: HashMap::new(),
            general: Vec::new(),
            motions: Motions::default(),
            layers: Vec::new(),
            imports: 0,
            steps: bytes.saturating_mul(STEPS_PER_BYTE) + STEPS,
        }
    }

    /// Reports whether the page has any styles of its own.
    pub(crate) fn has_rules(&self) -> bool {
        !self.rules.is_empty()
    }

    /// Reads a style sheet.
    pub(crate) fn add(&mut self, sheet: &str, media: &str) {
        let outer = match holds(&decode(media)) {
            Some(false) => return,
            other => other == Some(true),
        };
        let mut open: Vec<OpenBlock> = Vec::new();
        let mut rest = sheet;
        loop {
            rest = rest.trim_start();
            if open.is_empty() {
                rest = rest
                    .strip_prefix("<!--")
                    .or(rest.strip_prefix("-->"))
                    .unwrap_or(rest)
                    .trim_start();
            }
            if let Some(comment) = rest.strip_prefix("/*") {
                rest = comment.split_once("*/").map_or("", |(_, after)| after);
                continue;
            }
            if rest.is_empty() {
                break;
            }
            let in_rule = open.last().is_some_and(|open| !open.selectors.is_empty());
            let ends: &[u8] = match (in_rule || rest.starts_with('@'), open.is_empty()) {
                (true, true) => b"{;",
                (true, false) => b"{;}",
                (false, true) => b"{",
                (false, false) => b"{}",
            };
            let (end, sign) = until(rest, ends).unwrap_or((rest.len(), b';'));
            let piece = rest.get(..end).unwrap_or_default();
            rest = rest.get(end + 1..).unwrap_or_default();
            if sign == b'{' && piece.starts_with('@') {
                let at = decode(piece);
                let (kind, name) = at
                    .split_once(|c: char| c.is_ascii_whitespace())
                    .unwrap_or((&at, ""));
                if kind.ends_with("keyframes") || kind == "@property" {
                    let inner = until(rest, b"}")
                        .and_then(|(end, _)| rest.get(..end))
                        .unwrap_or(rest);
                    rest = rest.get(inner.len() + 1..).unwrap_or_default();
                    if kind == "@property" {
                        self.register(name.trim(), inner);
                    } else {
                        self.motions.add(self.tree.number(name.trim()), inner);
                    }
                    continue;
                }
            }
            if sign == b'{' {
                let sure = open.last().map_or(outer, |open| open.sure);
                match self.enter(piece, open.last(), sure) {
                    Some(entered) if open.len() < DEPTH => open.push(entered),
                    _ => rest = skip_block(rest),
                }
                continue;
            }
            if in_rule {
                if let Some(open) = open.last_mut() {
                    open.block.add(piece);
                }
            } else if piece
                .get(..7)
                .is_some_and(|start| start.eq_ignore_ascii_case("@import"))
            {
                self.import(piece.get(7..).unwrap_or_default());
            } else if piece
                .get(..6)
                .is_some_and(|start| start.eq_ignore_ascii_case("@layer"))
            {
                let around = open.last().and_then(|open| open.layer.clone());
                for name in piece.get(6..).unwrap_or_default().split(',') {
                    self.layer(&decode(name), around.as_ref());
                }
            }
            if sign == b'}'
                && let Some(closed) = open.pop()
            {
                self.keep(closed);
            }
        }
        while let Some(closed) = open.pop() {
            self.keep(closed);
        }
    }

    /// Imports a style sheet that is contained in its own URL. Any other is not known here.
    fn import(&mut self, from: &str) {
        let from = from.trim();
        let inner = from
            .get(..4)
            .filter(|start| start.eq_ignore_ascii_case("url("))
            .map_or(from, |_| from.get(4..).unwrap_or(""));
        let inner = inner.trim_start();
        let end = match inner.bytes().next() {
            Some(quote @ (b'"' | b'\'')) => inner
                .bytes()
                .skip(1)
                .position(|b| b == quote)
                .map(|end| end + 1),
            _ => inner.find(')'),
        };
        let target = inner
            .get(..end.unwrap_or(inner.len()))
            .unwrap_or_default()
            .trim_matches(['"', '\'', ' ']);
        self.imports += 1;
        match crate::text::data::text(target).filter(|_| self.imports <= IMPORTS) {
            Some(sheet) => self.add(&sheet, ""),
            None => self.linked = true,
        }
    }

    /// Registers a custom property, which may have a value before anything sets it (CSS Properties
    /// and Values, 2).
    fn register(&mut self, name: &str, block: &str) {
        for declared in Block::read(&block.replace("initial-value", "--initial-value")).normal {
            if let (Declaration::Custom(known, value), Some(name)) =
                (declared, name.strip_prefix("--"))
                && &*known == "initial-value"
            {
                self.vars.register(name, &value);
            }
        }
    }

    /// Returns a layer's full name and its position in the order of layers, which is the order in
    /// which they are first named.
    fn layer(&mut self, name: &str, around: Option<&(String, u64)>) -> (String, u64) {
        let name = if name.trim().is_empty() {
            format!("#{}", self.layers.len())
        } else {
            name.trim().to_owned()
        };
        let full = around.map_or_else(
            || name.clone(),
            |(outer, _)| cut(&format!("{outer}.{name}"), SELECTOR_BYTES).to_owned(),
        );
        let at = self
            .layers
            .iter()
            .position(|known| *known == full)
            .unwrap_or_else(|| {
                if self.layers.len() < LAYERS {
                    self.layers.push(full.clone());
                }
                self.layers.len().saturating_sub(1)
            });
        (full, at as u64)
    }

    /// Begins a block; returns `None` for blocks that are skipped.
    fn enter(
        &mut self,
        prelude: &str,
        around: Option<&OpenBlock>,
        sure: bool,
    ) -> Option<OpenBlock> {
        let layer = around.and_then(|open| open.layer.clone());
        let prelude = prelude.trim();
        let outer = around
            .map(|open| open.selectors.as_slice())
            .unwrap_or_default();
        if let Some(at) = prelude.strip_prefix('@') {
            let at = decode(at);
            let (name, rest) = at.split_at(
                at.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
                    .unwrap_or(at.len()),
            );
            let known = match name {
                "media" => holds(rest.trim()),
                "layer" | "-moz-document" | "scope" => Some(true),
                "supports" => supports(rest),
                "container" | "document" => None,
                _ => Some(false),
            };
            if known == Some(false) {
                return None;
            }
            let sure = sure && known == Some(true);
            let layer = if name == "layer" {
                Some(self.layer(rest, layer.as_ref()))
            } else {
                layer
            };
            return Some(OpenBlock {
                selectors: outer.to_vec(),
                block: Block::default(),
                sure,
                layer,
            });
        }
        let mut selectors = Vec::new();
        let mut left = prelude;
        while !left.is_empty() {
            let end = until(left, b",").map_or(left.len(), |(at, _)| at);
            let one = left.get(..end).unwrap_or_default().trim();
            left = left.get(end + 1..).unwrap_or_default();
            if outer.is_empty() {
                selectors.push(one.to_owned());
            }
            for parent in outer {
                selectors.push(if one.contains('&') {
                    one.replace('&', parent)
                } else {
                    format!("{parent} {one}")
                });
            }
            if !outer.is_empty()
                && (selectors.len() > SELECTORS
                    || selectors.iter().any(|s| s.len() > SELECTOR_BYTES))
            {
                self.exhausted = true;
                return None;
            }
        }
        Some(OpenBlock {
            selectors,
            block: Block::default(),
            sure,
            layer,
        })
    }

    fn keep(&mut self, open: OpenBlock) {
        if open.block.is_empty() || open.selectors.is_empty() {
            return;
        }
        let block = self.blocks.len();
        self.blocks.push(open.block);
        for text in &open.selectors {
            let Some(selector) = Selector::read(text, &self.tree) else {
                continue;
            };
            if self.rules.len() >= RULES {
                self.exhausted = true;
                return;
            }
            self.wants_attributes |= text.contains('[') || text.contains(':');
            let nth = self.rules.len();
            match selector.key {
                Some(key) => self.keyed.entry(key).or_default().push(nth),
                None => self.general.push(nth),
            }
            let layer = open.layer.as_ref().map_or(UNLAYERED, |(_, at)| *at);
            let rank = (layer << 56) | (u64::from(selector.specificity) << 32) | nth as u64;
            self.rules.push(Rule {
                selector,
                rank,
                block,
                sure: open.sure,
            });
        }
    }

    /// Opens an element that is nested in `depth` others. Returns the style that the sheets and its
    /// own style give it; `look` is its style without them.
    pub(crate) fn open(
        &mut self,
        depth: usize,
        (name, id, classes): (&str, &str, &str),
        attributes: &[(String, String)],
        own: &str,
        mut look: OwnStyle,
    ) -> OwnStyle {
        self.tree.close(depth);
        self.vars.close(depth);
        let own = if own.is_empty() {
            Block::default()
        } else {
            Block::read(own)
        };
        let mut work = 1 + own.normal.len() + own.important.len();
        let mut found: Vec<(u64, usize, bool)> = Vec::new();
        if !self.rules.is_empty() {
            self.tree.push(name, id, classes, attributes);
            let lists = self
                .tree
                .keys()
                .filter_map(|key| self.keyed.get(&key))
                .chain([&self.general]);
            for nth in lists.flatten() {
                let Some(rule) = self.rules.get(*nth) else {
                    continue;
                };
                work += 1;
                let matches = rule.selector.matches(&self.tree, &mut work);
                if matches > Matches::No {
                    found.push((rule.rank, rule.block, rule.sure && matches == Matches::Yes));
                }
                if work > self.steps {
                    break;
                }
            }
            found.sort_unstable();
        }
        if found.is_empty() && own.is_empty() {
            self.spend(work);
            return look;
        }
        let mut said: Vec<(&Declaration, bool)> = Vec::new();
        for important in [false, true] {
            if important && !self.layers.is_empty() {
                // For important declarations, the order of layers is reversed.
                found.sort_unstable_by_key(|(rank, ..)| rank ^ (UNLAYERED << 56));
            }
            let blocks = found
                .iter()
                .filter_map(|(_, block, sure)| Some((self.blocks.get(*block)?, *sure)));
            for (block, sure) in blocks.chain([(&own, true)]) {
                let declared = if important {
                    &block.important
                } else {
                    &block.normal
                };
                said.extend(declared.iter().map(|declared| (declared, sure)));
            }
            work += said.len();
            if work > self.steps {
                break;
            }
        }
        for (declared, sure) in &said {
            if let Declaration::Custom(name, value) = declared
                && *sure
            {
                self.vars.set(depth, name, value);
            }
        }
        for (declared, sure) in said {
            let Declaration::Late(name, value) = declared else {
                look.apply(declared, sure);
                continue;
            };
            work += value.len() / 16;
            if work > self.steps {
                break;
            }
            let mut read = Vec::new();
            if let Some(value) = self.vars.resolve(value, &mut work) {
                declare(name, value.trim(), &mut read);
            }
            read.iter().for_each(|declared| look.apply(declared, sure));
        }
        if let Some(words) = look.animation.take() {
            for (declared, sure) in self
                .motions
                .declarations(&words, |name| self.tree.number(name))
            {
                work += 1;
                look.apply(declared, sure);
            }
        }
        self.spend(work);
        look
    }

    /// Opens an element that no style applies to.
    pub(crate) fn pass(&mut self, depth: usize) {
        self.vars.close(depth);
    }

    fn spend(&mut self, work: usize) {
        self.steps = self.steps.saturating_sub(work);
        self.exhausted |= self.steps == 0;
    }
}

/// Reports whether a condition on what browsers support holds, or `None` if that is not known here.
fn supports(condition: &str) -> Option<bool> {
    let plain = !condition.contains("not") && !condition.contains("selector(");
    let known = |part: &str| {
        part.split_once(':')
            .is_some_and(|(name, _)| is_known_property(name.trim()))
    };
    (plain
        && condition
            .split(['(', ')'])
            .filter(|part| part.contains(':'))
            .all(known))
    .then_some(true)
}

/// Returns the text after a block whose opening brace was read.
fn skip_block(text: &str) -> &str {
    until(text, b"}")
        .and_then(|(at, _)| text.get(at + 1..))
        .unwrap_or_default()
}
