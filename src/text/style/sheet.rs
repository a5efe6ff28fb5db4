//! The style sheets of a page, and the style that they and an element's own style attribute give
//! it.

use std::collections::HashMap;

use super::declare::{Block, Declaration, is_known_property, read_declaration};
use super::look::OwnStyle;
use super::media::evaluate;
use super::motion::Animations;
use super::scan::{decode, find_end};
use super::select::{Matches, Selector, StartTag, Tree};
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
    rules_by_key: HashMap<u64, Vec<usize>>,
    unkeyed_rules: Vec<usize>,
    animations: Animations,
    layers: Vec<String>,
    imports: usize,
    steps: usize,
}

#[derive(Debug)]
struct Rule {
    selector: Selector,
    rank: u64,
    block: usize,
    is_certain: bool,
}

/// A block that is being read.
struct OpenBlock {
    /// The selectors of the rule, or of the enclosing rule; empty outside of rules.
    selectors: Vec<String>,
    block: Block,
    is_certain: bool,
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
            rules_by_key: HashMap::new(),
            unkeyed_rules: Vec::new(),
            animations: Animations::default(),
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
        let media_applies = match evaluate(&decode(media)) {
            Some(false) => return,
            other => other == Some(true),
        };
        let mut stack: Vec<OpenBlock> = Vec::new();
        let mut rest = sheet;
        loop {
            rest = rest.trim_start();
            if stack.is_empty() {
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
            let in_rule = stack.last().is_some_and(|open| !open.selectors.is_empty());
            let ends: &[u8] = match (in_rule || rest.starts_with('@'), stack.is_empty()) {
                (true, true) => b"{;",
                (true, false) => b"{;}",
                (false, true) => b"{",
                (false, false) => b"{}",
            };
            let (end, sign) = find_end(rest, ends).unwrap_or((rest.len(), b';'));
            let piece = rest.get(..end).unwrap_or_default();
            rest = rest.get(end + 1..).unwrap_or_default();
            if sign == b'{' && piece.starts_with('@') {
                let at = decode(piece);
                let (kind, name) = at
                    .split_once(|c: char| c.is_ascii_whitespace())
                    .unwrap_or((&at, ""));
                if kind.ends_with("keyframes") || kind == "@property" {
                    let inner = find_end(rest, b"}")
                        .and_then(|(end, _)| rest.get(..end))
                        .unwrap_or(rest);
                    rest = rest.get(inner.len() + 1..).unwrap_or_default();
                    if kind == "@property" {
                        self.register(name.trim(), inner);
                    } else {
                        self.animations.add(self.tree.hash_name(name.trim()), inner);
                    }
                    continue;
                }
            }
            if sign == b'{' {
                let is_certain = stack.last().map_or(media_applies, |open| open.is_certain);
                match self.begin_block(piece, stack.last(), is_certain) {
                    Some(block) if stack.len() < DEPTH => stack.push(block),
                    _ => rest = skip_block(rest),
                }
                continue;
            }
            if in_rule {
                if let Some(innermost) = stack.last_mut() {
                    innermost.block.add(piece);
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
                let enclosing_layer = stack.last().and_then(|open| open.layer.clone());
                for name in piece.get(6..).unwrap_or_default().split(',') {
                    self.resolve_layer(&decode(name), enclosing_layer.as_ref());
                }
            }
            if sign == b'}'
                && let Some(closed) = stack.pop()
            {
                self.store_block(closed);
            }
        }
        while let Some(closed) = stack.pop() {
            self.store_block(closed);
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
        for declaration in Block::read(&block.replace("initial-value", "--initial-value")).normal {
            if let (Declaration::Custom(property, value), Some(name)) =
                (declaration, name.strip_prefix("--"))
                && &*property == "initial-value"
            {
                self.vars.register(name, &value);
            }
        }
    }

    /// Returns a layer's full name and its position in the order of layers, which is the order in
    /// which they are first named.
    fn resolve_layer(&mut self, name: &str, outer_layer: Option<&(String, u64)>) -> (String, u64) {
        let name = if name.trim().is_empty() {
            format!("#{}", self.layers.len())
        } else {
            name.trim().to_owned()
        };
        let full_name = outer_layer.map_or_else(
            || name.clone(),
            |(outer, _)| cut(&format!("{outer}.{name}"), SELECTOR_BYTES).to_owned(),
        );
        let at = self
            .layers
            .iter()
            .position(|existing| *existing == full_name)
            .unwrap_or_else(|| {
                if self.layers.len() < LAYERS {
                    self.layers.push(full_name.clone());
                }
                self.layers.len().saturating_sub(1)
            });
        (full_name, at as u64)
    }

    /// Begins a block; returns `None` for blocks that are skipped.
    fn begin_block(
        &mut self,
        prelude: &str,
        enclosing: Option<&OpenBlock>,
        is_certain: bool,
    ) -> Option<OpenBlock> {
        let layer = enclosing.and_then(|open| open.layer.clone());
        let prelude = prelude.trim();
        let outer = enclosing
            .map(|open| open.selectors.as_slice())
            .unwrap_or_default();
        if let Some(at) = prelude.strip_prefix('@') {
            let at = decode(at);
            let (name, rest) = at.split_at(
                at.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
                    .unwrap_or(at.len()),
            );
            let applies = match name {
                "media" => evaluate(rest.trim()),
                "layer" | "-moz-document" | "scope" => Some(true),
                "supports" => evaluate_supports(rest),
                "container" | "document" => None,
                _ => Some(false),
            };
            if applies == Some(false) {
                return None;
            }
            let is_certain = is_certain && applies == Some(true);
            let layer = if name == "layer" {
                Some(self.resolve_layer(rest, layer.as_ref()))
            } else {
                layer
            };
            return Some(OpenBlock {
                selectors: outer.to_vec(),
                block: Block::default(),
                is_certain,
                layer,
            });
        }
        let mut selectors = Vec::new();
        let mut remaining = prelude;
        while !remaining.is_empty() {
            let end = find_end(remaining, b",").map_or(remaining.len(), |(at, _)| at);
            let selector = remaining.get(..end).unwrap_or_default().trim();
            remaining = remaining.get(end + 1..).unwrap_or_default();
            if outer.is_empty() {
                selectors.push(selector.to_owned());
            }
            for parent in outer {
                selectors.push(if selector.contains('&') {
                    selector.replace('&', parent)
                } else {
                    format!("{parent} {selector}")
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
            is_certain,
            layer,
        })
    }

    fn store_block(&mut self, open: OpenBlock) {
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
                Some(key) => self.rules_by_key.entry(key).or_default().push(nth),
                None => self.unkeyed_rules.push(nth),
            }
            let layer = open.layer.as_ref().map_or(UNLAYERED, |(_, at)| *at);
            let rank = (layer << 56) | (u64::from(selector.specificity) << 32) | nth as u64;
            self.rules.push(Rule {
                selector,
                rank,
                block,
                is_certain: open.is_certain,
            });
        }
    }

    /// Opens an element that is nested in `depth` others. Returns the style that the sheets and its
    /// `style` attribute give it; `style` is its style without them.
    pub(crate) fn open_element(
        &mut self,
        depth: usize,
        tag: &StartTag<'_>,
        mut style: OwnStyle,
    ) -> OwnStyle {
        self.tree.close(depth);
        self.vars.close(depth);
        let own_block = if tag.style.is_empty() {
            Block::default()
        } else {
            Block::read(tag.style)
        };
        let mut work = 1 + own_block.normal.len() + own_block.important.len();
        let mut matching: Vec<(u64, usize, bool)> = Vec::new();
        if !self.rules.is_empty() {
            self.tree.push(tag);
            let lists = self
                .tree
                .keys()
                .filter_map(|key| self.rules_by_key.get(&key))
                .chain([&self.unkeyed_rules]);
            for nth in lists.flatten() {
                let Some(rule) = self.rules.get(*nth) else {
                    continue;
                };
                work += 1;
                let matches = rule.selector.matches(&self.tree, &mut work);
                if matches > Matches::No {
                    matching.push((
                        rule.rank,
                        rule.block,
                        rule.is_certain && matches == Matches::Yes,
                    ));
                }
                if work > self.steps {
                    break;
                }
            }
            matching.sort_unstable();
        }
        if matching.is_empty() && own_block.is_empty() {
            self.consume_steps(work);
            return style;
        }
        let mut declarations: Vec<(&Declaration, bool)> = Vec::new();
        for important in [false, true] {
            if important && !self.layers.is_empty() {
                // For important declarations, the order of layers is reversed.
                matching.sort_unstable_by_key(|(rank, ..)| rank ^ (UNLAYERED << 56));
            }
            let blocks = matching
                .iter()
                .filter_map(|(_, block, is_certain)| Some((self.blocks.get(*block)?, *is_certain)));
            for (block, is_certain) in blocks.chain([(&own_block, true)]) {
                let block_declarations = if important {
                    &block.important
                } else {
                    &block.normal
                };
                declarations.extend(
                    block_declarations
                        .iter()
                        .map(|declared| (declared, is_certain)),
                );
            }
            work += declarations.len();
            if work > self.steps {
                break;
            }
        }
        for (declaration, is_certain) in &declarations {
            if let Declaration::Custom(name, value) = declaration
                && *is_certain
            {
                self.vars.set(depth, name, value);
            }
        }
        for (declaration, is_certain) in declarations {
            let Declaration::Unresolved(name, value) = declaration else {
                style.apply(declaration, is_certain);
                continue;
            };
            work += value.len() / 16;
            if work > self.steps {
                break;
            }
            let mut resolved = Vec::new();
            if let Some(value) = self.vars.resolve(value, &mut work) {
                read_declaration(name, value.trim(), &mut resolved);
            }
            resolved
                .iter()
                .for_each(|declaration| style.apply(declaration, is_certain));
        }
        if let Some(words) = style.animation.take() {
            for (declaration, is_certain) in self
                .animations
                .declarations(&words, |name| self.tree.hash_name(name))
            {
                work += 1;
                style.apply(declaration, is_certain);
            }
        }
        self.consume_steps(work);
        style
    }

    /// Opens an element that no style applies to.
    pub(crate) fn skip_element(&mut self, depth: usize) {
        self.vars.close(depth);
    }

    fn consume_steps(&mut self, work: usize) {
        self.steps = self.steps.saturating_sub(work);
        self.exhausted |= self.steps == 0;
    }
}

/// Reports whether a condition on what browsers support holds, or `None` if that is not known here.
fn evaluate_supports(condition: &str) -> Option<bool> {
    let is_plain = !condition.contains("not") && !condition.contains("selector(");
    let is_supported = |part: &str| {
        part.split_once(':')
            .is_some_and(|(name, _)| is_known_property(name.trim()))
    };
    (is_plain
        && condition
            .split(['(', ')'])
            .filter(|part| part.contains(':'))
            .all(is_supported))
    .then_some(true)
}

/// Returns the text after a block whose opening brace was read.
fn skip_block(text: &str) -> &str {
    find_end(text, b"}")
        .and_then(|(at, _)| text.get(at + 1..))
        .unwrap_or_default()
}
