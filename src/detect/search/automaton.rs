//! The regexes of a unit, compiled when a text first needs them and dropped when others need the
//! memory.
//!
//! They run as lazy automata: states are created as texts need them and kept in caches per thread.
//! The forward automaton determines whether there is a match and where it ends. The backward
//! automaton, which finds where the match begins, is compiled at the first match. Input that a lazy
//! automaton cannot handle (a Unicode word boundary next to a non-ASCII letter) is left to the much
//! slower simulation of the same program.

use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use arc_swap::ArcSwapOption;
use bytestring::ByteString;
use parking_lot::Mutex;
use regex_automata::hybrid::dfa::{Cache, Config, DFA};
use regex_automata::nfa::thompson::pikevm::{self, PikeVM};
use regex_automata::nfa::thompson::{Compiler, NFA, WhichCaptures};
use regex_automata::{Anchored, Input, MatchKind};
use regex_syntax::hir::Hir;

use super::regex::{self, REGEX_BYTES};
use super::{hir, parse};
use crate::detect::prepared::{self, Use};
use crate::text::quick::QuickMap;

/// Maximum size of the compiled regexes of all rules that are kept, in bytes. The pages of
/// `deploy/guide`, one after another, need more than 4 MB: with that limit, each page dropped
/// regexes that the next one needed, and compilation took five times as long.
const COMPILED_BYTES: usize = 16 << 20;
/// Maximum size of the states of one lazy automaton on one thread, and of all of them on one
/// thread, in bytes. Manual pages need about 6 MB: with 4 MB, states were constantly dropped and
/// recreated, which cost six times as much as the searches. The largest regexes need more than 192
/// kB for documents: with that limit, all states created for known texts were theirs.
const CACHE_BYTES: usize = 1 << 20;
const CACHES_BYTES: usize = 8 << 20;

/// Regexes that are searched for together.
pub(super) struct Automaton {
    /// The regexes, each with its index among those of its rule.
    sources: Vec<(usize, ByteString)>,
    compiled: ArcSwapOption<Compiled>,
    /// Whether the automaton was used since the last time that compiled regexes were dropped.
    used: AtomicBool,
}

/// A match, and the index of its regex among those of the rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RegexMatch {
    pub(super) span: Range<usize>,
    pub(super) source: usize,
}

/// Compiled regexes, which can be used on any thread.
pub(super) struct Compiled {
    /// Identifies the caches of these regexes.
    id: u64,
    sources: Vec<usize>,
    /// Whether the regexes are in lower case, and search texts in lower case.
    in_lower_case: bool,
    nfa: NFA,
    /// `None` if the regexes cannot run as a lazy automaton.
    forward: Option<DFA>,
    backward: OnceLock<Option<DFA>>,
    backward_id: u64,
}

static IDS: AtomicU64 = AtomicU64::new(0);
static COMPILED: Mutex<Vec<Weak<Automaton>>> = Mutex::new(Vec::new());
/// The compilers of forward and of backward programs. Each keeps 400 kB for classes of characters,
/// which would otherwise be allocated for each program. A thread that finds one in use makes its
/// own.
static COMPILERS: [Mutex<Option<Compiler>>; 2] = [const { Mutex::new(None) }; 2];

/// The states that a thread has created for lazy automata, by the ids of the automata.
#[derive(Default)]
struct Caches {
    by_id: QuickMap<u64, CachedStates>,
    bytes: usize,
    /// Number of searches so far.
    searches: u64,
}

/// The states of one lazy automaton.
struct CachedStates {
    cache: Box<Cache>,
    /// The latest search that used the states.
    search: u64,
}

impl Caches {
    /// Drops the least recently used half.
    fn halve(&mut self) {
        let mut searches: Vec<u64> = self.by_id.values().map(|states| states.search).collect();
        let middle = searches.len() / 2;
        let (_, oldest_retained, _) = searches.select_nth_unstable(middle);
        let oldest_retained = *oldest_retained;
        self.by_id
            .retain(|_, states| states.search >= oldest_retained);
        self.bytes = self
            .by_id
            .values()
            .map(|states| states.cache.memory_usage())
            .sum();
    }
}

thread_local! {
    static CACHES: RefCell<Caches> = RefCell::default();
    /// The memory for simulations, which is at most a few hundred kilobytes because the size of a
    /// program is bounded.
    static SIMULATION: RefCell<Option<pikevm::Cache>> = const { RefCell::new(None) };
}

impl Automaton {
    pub(super) fn new(sources: Vec<(usize, ByteString)>) -> Arc<Self> {
        Arc::new(Self {
            sources,
            compiled: ArcSwapOption::empty(),
            used: AtomicBool::new(false),
        })
    }

    /// Returns the compiled regexes; `None` if they cannot be compiled.
    pub(super) fn get(self: &Arc<Self>) -> Option<Arc<Compiled>> {
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        self.compiled.load_full().or_else(|| {
            let compiled = Arc::new(Compiled::new(&self.sources).ok()?);
            self.compiled.store(Some(compiled.clone()));
            register(self);
            Some(compiled)
        })
    }
}

/// Registers newly compiled regexes. If the total size exceeds the limit, drops others, the least
/// recently used first.
fn register(newest: &Arc<Automaton>) {
    let mut registered = COMPILED.lock();
    let mut total = 0_usize;
    let size = |automaton: &Automaton| {
        automaton
            .compiled
            .load()
            .as_ref()
            .map_or(0, |compiled| compiled.memory())
    };
    registered.retain(|automaton| {
        automaton
            .upgrade()
            .is_some_and(|automaton| !Arc::ptr_eq(&automaton, newest))
    });
    registered
        .iter()
        .filter_map(Weak::upgrade)
        .for_each(|automaton| total += size(&automaton));
    total += size(newest);
    // Two rounds: the first one spares regexes that were used since the last time.
    let mut attempts = registered.len() * 2;
    while total > COMPILED_BYTES && attempts > 0 {
        attempts -= 1;
        let Some(oldest) = registered.first().and_then(Weak::upgrade) else {
            break;
        };
        if oldest.used.swap(false, Ordering::Relaxed) {
            registered.rotate_left(1);
        } else {
            total = total.saturating_sub(size(&oldest));
            oldest.compiled.store(None);
            registered.remove(0);
        }
    }
    registered.push(Arc::downgrade(newest));
}

impl Compiled {
    /// # Errors
    /// Returns the bound that the regexes exceed.
    pub(super) fn new(sources: &[(usize, ByteString)]) -> Result<Self, String> {
        let (hirs, in_lower_case) = parse_all(sources)?;
        let nfa = build_program(&hirs, false)?;
        Ok(Self {
            id: IDS.fetch_add(1, Ordering::Relaxed),
            sources: sources.iter().map(|(index, _)| *index).collect(),
            in_lower_case,
            forward: build_lazy(&nfa, MatchKind::LeftmostFirst),
            nfa,
            backward: OnceLock::new(),
            backward_id: IDS.fetch_add(1, Ordering::Relaxed),
        })
    }

    /// Reports whether the text must be in lower case.
    pub(super) fn is_in_lower_case(&self) -> bool {
        self.in_lower_case
    }

    fn memory(&self) -> usize {
        self.nfa.memory_usage()
            + self
                .backward
                .get()
                .and_then(Option::as_ref)
                .map_or(0, |dfa| dfa.get_nfa().memory_usage())
    }

    /// Returns the first match in a part of the text, or, if `anchored`, the match that begins at
    /// the start of the part.
    pub(super) fn find(
        &self,
        unit: &Automaton,
        text: &[u8],
        part: Range<usize>,
        anchored: bool,
    ) -> Option<RegexMatch> {
        let anchor = if anchored {
            Anchored::Yes
        } else {
            Anchored::No
        };
        let input = Input::new(text).range(part.clone()).anchored(anchor);
        let Some(forward) = &self.forward else {
            return self.simulate(&input);
        };
        let Ok(end) = with_cache(self.id, forward, |cache| {
            forward.try_search_fwd(cache, &input)
        }) else {
            return self.simulate(&input);
        };
        let end = end?;
        let source = self
            .sources
            .get(end.pattern().as_usize())
            .copied()
            .unwrap_or_default();
        if anchored {
            return Some(RegexMatch {
                span: part.start..end.offset(),
                source,
            });
        }
        let Some(backward) = self.backward(unit) else {
            return self.simulate(&input);
        };
        let reverse_input = Input::new(text)
            .range(part.start..end.offset())
            .anchored(Anchored::Yes);
        match with_cache(self.backward_id, backward, |cache| {
            backward.try_search_rev(cache, &reverse_input)
        }) {
            Ok(Some(start)) => Some(RegexMatch {
                span: start.offset()..end.offset(),
                source,
            }),
            Ok(None) | Err(_) => self.simulate(&input),
        }
    }

    fn backward(&self, unit: &Automaton) -> Option<&DFA> {
        let build = || {
            let (hirs, _) = parse_all(&unit.sources).ok()?;
            build_lazy(&build_program(&hirs, true).ok()?, MatchKind::All)
        };
        self.backward.get_or_init(build).as_ref()
    }

    fn simulate(&self, input: &Input<'_>) -> Option<RegexMatch> {
        // Two slots for each regex: the start and the end of its match.
        let machine = PikeVM::new_from_nfa(self.nfa.clone()).ok()?;
        let found = SIMULATION.with_borrow_mut(|slot| {
            let cache = slot.get_or_insert_with(|| machine.create_cache());
            cache.reset(&machine);
            machine.find(cache, input.clone())
        })?;
        let source = self
            .sources
            .get(found.pattern().as_usize())
            .copied()
            .unwrap_or_default();
        Some(RegexMatch {
            span: found.range(),
            source,
        })
    }
}

/// Returns regexes as the compiler takes them for one program, and reports whether they are in lower
/// case.
fn parse_all(sources: &[(usize, ByteString)]) -> Result<(Vec<Hir>, bool), String> {
    let lower: Option<Vec<Hir>> = sources
        .iter()
        .map(|(_, source)| {
            prepared::record(Use::LowerCase, source)
                .and_then(|mut record| hir::read(&mut record))
                .or_else(|| hir::in_lower_case(source))
        })
        .collect();
    if let Some(hirs) = lower {
        return Ok((hirs, true));
    }
    let as_written = |(_, source): &(_, ByteString)| Ok(hir::rewrite(parse::parse(source)?));
    let hirs: Result<Vec<Hir>, String> = sources.iter().map(as_written).collect();
    Ok((hirs?, false))
}

/// Builds the program of several regexes.
fn build_program(hirs: &[Hir], backward: bool) -> Result<NFA, String> {
    let captures = if backward {
        WhichCaptures::None
    } else {
        WhichCaptures::Implicit
    };
    let config = NFA::config()
        .utf8(false)
        .nfa_size_limit(Some(REGEX_BYTES))
        .which_captures(captures)
        .reverse(backward);
    let mut shared = COMPILERS
        .get(usize::from(backward))
        .and_then(|compiler| compiler.try_lock());
    let mut own = None;
    shared
        .as_deref_mut()
        .unwrap_or(&mut own)
        .get_or_insert_with(|| {
            let mut compiler = Compiler::new();
            compiler.configure(config);
            compiler
        })
        .build_many_from_hir(hirs)
        .map_err(|error| regex::build_error_message(&error))
}

/// Builds a lazy automaton for a program, or returns `None` if that is not possible.
fn build_lazy(nfa: &NFA, kind: MatchKind) -> Option<DFA> {
    let config = Config::new()
        .match_kind(kind)
        .unicode_word_boundary(true)
        .skip_cache_capacity_check(true)
        .cache_capacity(CACHE_BYTES);
    DFA::builder()
        .configure(config)
        .build_from_nfa(nfa.clone())
        .ok()
}

/// Runs a search with the states of an automaton that this thread has created so far.
fn with_cache<T>(id: u64, automaton: &DFA, search: impl FnOnce(&mut Cache) -> T) -> T {
    CACHES.with_borrow_mut(|caches| {
        caches.searches += 1;
        let mut before = 0;
        let states = match caches.by_id.entry(id) {
            Entry::Occupied(occupied) => {
                before = occupied.get().cache.memory_usage();
                occupied.into_mut()
            }
            Entry::Vacant(vacant) => vacant.insert(CachedStates {
                cache: Box::new(automaton.create_cache()),
                search: 0,
            }),
        };
        states.search = caches.searches;
        let result = search(&mut states.cache);
        caches.bytes = (caches.bytes + states.cache.memory_usage()).saturating_sub(before);
        if caches.bytes > CACHES_BYTES {
            caches.halve();
        }
        result
    })
}

impl fmt::Debug for Automaton {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.sources)
    }
}
