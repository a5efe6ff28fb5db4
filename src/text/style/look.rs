//! The combined effect of all declarations for one element, and what it then inherits and shows.

use super::colour::{Colour, Paint};
use super::declare::{Blend, Block, Declaration, Measure, Side};
use super::value::{Length, SCREEN};

/// The style of an element by itself; `None` for properties that were not set.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnStyle {
    pub(crate) gone: bool,
    pub(crate) colour: Option<Paint>,
    pub(crate) ground: Option<Paint>,
    none: bool,
    /// One bit for each [`super::declare::HidingProperty`].
    vanish: u16,
    visibility: Option<Option<bool>>,
    opacity: Option<f32>,
    font: Option<Length>,
    zoom: Option<f32>,
    line: Option<Length>,
    fill: Option<Option<Paint>>,
    stroke: Option<Option<Paint>>,
    image: Option<Option<Paint>>,
    clip_text: bool,
    dark: Option<bool>,
    placed: bool,
    fixed: bool,
    /// Left, top, right, bottom.
    shift: [Option<Length>; 4],
    margin: [Length; 4],
    indent: Length,
    translate: (Length, Length),
    overflow: bool,
    cuts: bool,
    contained: bool,
    pad: Length,
    border_box: bool,
    /// The factors of `transform` and of `scale`.
    grow: [Option<f32>; 2],
    turned: bool,
    one_sided: bool,
    view: Option<(f32, f32)>,
    pub(super) animation: Option<Box<str>>,
    /// Width, height, maximum width and height, rows, columns.
    size: [Option<Length>; 6],
    behind: bool,
    blend: Blend,
}

/// The style that an element passes on to its content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InheritedStyle {
    pub(crate) gone: bool,
    pub(crate) colour: Option<Colour>,
    pub(crate) ground: Colour,
    /// Whether the background may be painted by something that is not known here.
    pub(crate) unsure: bool,
    /// Whether the text colour was set, rather than left to something that is not known here.
    pub(crate) told: bool,
    invisible: bool,
    font: f32,
    line: f32,
    opacity: f32,
    x: f32,
    y: f32,
    fill: Option<Option<Colour>>,
    /// The outline of the letters; the inner `None` is an unknown colour.
    stroke: Option<Option<Colour>>,
    /// How much of the size is left.
    scale: f32,
    /// How far to the right and down content is still visible, in pixels.
    room: (f32, f32),
}

/// Maximum font size at which a person cannot read letters, in pixels.
const TINY: f32 = 3.0;
/// Maximum size of a box that has no room for a letter, in pixels.
const FLAT: f32 = 3.0;
/// Maximum opacity at which nobody sees an element.
const FAINT: f32 = 0.12;
/// Positions at which content is out of sight, in pixels: to the left of or above the screen, and
/// to the right of it.
const FAR: f32 = -400.0;
const FAR_RIGHT: f32 = 2500.0;
/// Assumed size of an element that does not set one, in pixels.
const BOX: (f32, f32) = (400.0, 200.0);

impl InheritedStyle {
    /// The style of a page before any declaration.
    pub(crate) const START: Self = Self {
        gone: false,
        colour: Some(Colour::BLACK),
        ground: Colour::WHITE,
        unsure: false,
        told: false,
        invisible: false,
        font: 16.0,
        line: f32::MAX,
        opacity: 1.0,
        x: 0.0,
        y: 0.0,
        fill: None,
        stroke: None,
        scale: 1.0,
        room: (f32::MAX, f32::MAX),
    };

    /// Reports whether a person does not see text with this style.
    pub(crate) fn hides(&self) -> bool {
        self.gone
            || self.invisible
            || self.font <= TINY
            || self.font * self.scale <= TINY
            || self.opacity <= FAINT
            || self.x <= FAR
            || self.x >= FAR_RIGHT
            || self.y <= FAR
            || (!self.unsure && self.melts())
    }

    /// Reports whether that depends on something that is not known here.
    pub(crate) fn doubtful(&self) -> bool {
        self.unsure && self.told && self.melts()
    }

    fn melts(&self) -> bool {
        let letters = self.fill.unwrap_or(self.colour);
        let melt =
            |colour: Option<Colour>| colour.is_some_and(|colour| colour.melts_into(self.ground));
        melt(letters) && self.stroke.is_none_or(melt)
    }
}

impl OwnStyle {
    /// Applies a declaration. If it is not certain to apply, it counts only if it can hide
    /// something.
    pub(super) fn apply(&mut self, declared: &Declaration, sure: bool) {
        use Declaration as D;
        if !sure && !hides(declared) {
            return;
        }
        match *declared {
            D::Display(none) => self.none = none,
            D::Visibility(hidden) => self.visibility = Some(hidden),
            D::Opacity(share) => self.opacity = Some(share),
            D::FontSize(size) => self.font = Some(size),
            D::Zoom(by) => self.zoom = Some(by),
            D::LineHeight(height) => self.line = Some(height),
            D::Vanish(way, true) => self.vanish |= 1 << way as u16,
            D::Vanish(way, false) => self.vanish &= !(1 << way as u16),
            D::Colour(paint) => self.colour = Some(paint),
            D::Fill(paint) => self.fill = Some(paint),
            D::Stroke(stroke) => self.stroke = Some(stroke),
            D::Ground(paint) => self.ground = Some(paint),
            D::Image(image) => self.image = Some(image),
            D::ClipText(clip) => self.clip_text = clip,
            D::Scheme(dark) => self.dark = Some(dark),
            D::Position(placed, fixed) => (self.placed, self.fixed) = (placed, fixed),
            D::Shift(side, length) => put(&mut self.shift, side as usize, length),
            D::Margin(side, length) => put(&mut self.margin, side as usize, length),
            D::Indent(length) => self.indent = length,
            D::Translate(x, y) => self.translate = (x, y),
            D::Overflow(clips, cuts) => (self.overflow, self.cuts) = (clips, cuts),
            D::Contained(contained) => self.contained = contained,
            D::Pad(top) => self.pad = top,
            D::BorderBox(border) => self.border_box = border,
            D::Grow(transform, by) => put(&mut self.grow, usize::from(!transform), Some(by)),
            D::Turned(turned) => self.turned = turned,
            D::OneSided(one_sided) => self.one_sided = one_sided,
            D::View(width, height) => self.view = Some((width, height)),
            D::Animation(ref words) => {
                let before = self.animation.take().unwrap_or_default();
                self.animation = Some(format!("{before} {words}").into());
            }
            D::Size(measure, length) => put(&mut self.size, measure as usize, length),
            D::ZIndex(index) => self.behind = index < 0,
            D::Blend(blend) => self.blend = blend,
            D::All => {
                *self = Self {
                    gone: self.gone,
                    colour: self.colour.map(|_| Paint::Inherit),
                    ..Self::default()
                }
            }
            D::Custom(..) | D::Late(..) => {}
        }
    }

    /// Applies declarations that all others override.
    pub(crate) fn hint(&mut self, declarations: &str) {
        Block::read(declarations)
            .normal
            .iter()
            .for_each(|declared| self.apply(declared, true));
    }

    /// Returns the style of an element with this look within another.
    pub(crate) fn within(&self, parent: &InheritedStyle) -> InheritedStyle {
        let mut seen = *parent;
        seen.font = self
            .font
            .map_or(parent.font, |size| size.px(parent.font, parent.font))
            * self.zoom.unwrap_or(1.0);
        seen.line = self
            .line
            .map_or(parent.line, |line| line.px(seen.font, seen.font));
        seen.invisible = self.visibility.unwrap_or(None).unwrap_or(parent.invisible);
        seen.opacity = parent.opacity * self.opacity.unwrap_or(1.0);
        self.paint(&mut seen, parent);
        let cramped = self.overflow
            && (self.contained
                || self.is_flat(seen.font)
                || seen.line <= FLAT
                || self.indent.px(seen.font, 1000.0) >= 900.0);
        let letters = seen.fill.unwrap_or(seen.colour).map_or(0.5, Colour::light);
        let blended = match self.blend {
            Blend::Normal => false,
            Blend::Lighter => letters < 0.2 || (parent.ground.light() > 0.9 && !parent.unsure),
            Blend::Darker => letters > 0.9 || (parent.ground.light() < 0.1 && !parent.unsure),
            Blend::Difference => letters < 0.1,
        };
        let away = self.gone || self.none || self.vanish != 0 || (self.turned && self.one_sided);
        seen.gone |= away || cramped || blended || (self.behind && self.placed);
        seen.scale *= self.grow.iter().flatten().product::<f32>();
        self.place(&mut seen);
        seen
    }

    fn is_flat(&self, font: f32) -> bool {
        self.size
            .iter()
            .flatten()
            .any(|length| length.px(font, 300.0) <= FLAT)
    }

    fn paint(&self, seen: &mut InheritedStyle, parent: &InheritedStyle) {
        if let Some(dark) = self.dark.filter(|_| !parent.told) {
            // The screen itself follows the colour scheme.
            (seen.ground, seen.colour) = if dark {
                (Colour([0.07, 0.07, 0.07, 1.0]), Some(Colour::WHITE))
            } else {
                (parent.ground, parent.colour)
            };
        }
        match self.colour {
            Some(Paint::Is(colour)) => (seen.colour, seen.told) = (Some(colour), true),
            Some(Paint::Unknown) => seen.colour = None,
            Some(Paint::Current | Paint::Inherit) | None => {}
        }
        let own = seen.colour;
        let resolve = |paint: Paint, inherited: Option<Colour>| match paint {
            Paint::Is(colour) => Some(colour),
            Paint::Current => own,
            Paint::Inherit => inherited,
            Paint::Unknown => None,
        };
        if let Some(fill) = self.fill {
            seen.fill = fill.map(|paint| resolve(paint, parent.fill.unwrap_or(parent.colour)));
            seen.told |= fill.is_some();
        }
        if let Some(stroke) = self.stroke {
            seen.stroke = stroke
                .map(|paint| resolve(paint, None))
                .filter(|stroke| stroke.is_none_or(|line| line.alpha() > 0.1));
        }
        let ground = match self.ground {
            Some(Paint::Inherit) => Some(Some(parent.ground)),
            Some(paint) => Some(resolve(paint, None)),
            None => None,
        };
        let image = self.image.flatten().map(|paint| resolve(paint, None));
        if self.clip_text {
            // The letters show what would be behind them.
            let through = seen
                .fill
                .unwrap_or(seen.colour)
                .is_some_and(|colour| colour.alpha() < 0.1);
            if through {
                seen.fill = Some(image.or(ground).unwrap_or(Some(Colour::CLEAR)));
            }
            return;
        }
        match ground {
            Some(Some(colour)) if colour.alpha() > 0.02 => {
                seen.ground = colour.over(parent.ground);
                seen.unsure = parent.unsure && colour.alpha() < 0.9;
            }
            Some(None) => seen.unsure = true,
            Some(Some(_)) | None => {}
        }
        match image {
            Some(Some(colour)) => {
                (seen.ground, seen.unsure) = (
                    colour.over(seen.ground),
                    seen.unsure && colour.alpha() < 0.9,
                )
            }
            // Behind an image that does not load is the colour that is specified with it.
            Some(None) => {
                seen.unsure |= !matches!(ground, Some(Some(colour)) if colour.alpha() > 0.9)
            }
            None => {}
        }
    }

    fn place(&self, seen: &mut InheritedStyle) {
        let em = seen.font;
        let (width, height) = SCREEN;
        if self.fixed {
            (seen.x, seen.y) = (0.0, 0.0);
            seen.room = (width, height);
        }
        let [left, top, right, bottom] = self.shift.map(|side| side.filter(|_| self.placed));
        let outward = |far: f32, whole: f32| if far >= whole { -far } else { 0.0 };
        match (left, right) {
            (Some(left), _) => seen.x += left.px(em, width),
            (None, Some(right)) => {
                let far = right.px(em, width);
                seen.gone |= far <= FAR;
                seen.x += outward(far, width);
            }
            (None, None) => {}
        }
        match (top, bottom) {
            (Some(top), _) => {
                let far = top.px(em, height);
                seen.gone |= self.fixed && far >= 2.0 * height;
                // Further down only means further to scroll.
                seen.y += far.min(height);
            }
            (None, Some(bottom)) => {
                let far = bottom.px(em, height);
                seen.gone |= far <= FAR;
                seen.y += outward(far, 2.0 * height);
            }
            (None, None) => {}
        }
        let [margin_left, margin_top, ..] = self.margin;
        let (x, y) = self.translate;
        let own = |measure: Measure, whole: f32, otherwise: f32| {
            self.size
                .get(measure as usize)
                .copied()
                .flatten()
                .map_or(otherwise, |size| size.px(em, whole))
        };
        seen.x += margin_left.px(em, width)
            + self.indent.px(em, width)
            + x.px(em, own(Measure::Width, width, BOX.0));
        seen.y += margin_top.px(em, height).min(height)
            + y.px(em, own(Measure::Height, height, BOX.1)).min(height);
        seen.gone |= y.px(em, 0.0) >= 5.0 * height;
        let within = |room: f32, screen: f32| if room < f32::MAX { room } else { screen };
        let wide = within(seen.room.0, width);
        let high = within(seen.room.1, height);
        let reach = |side: Option<Length>, whole: f32| side.map_or(0.0, |side| side.px(em, whole));
        self.shut_in(
            seen,
            reach(left, wide) + margin_left.px(em, wide) + x.px(em, own(Measure::Width, wide, 0.0)),
            reach(top, high) + margin_top.px(em, high) + y.px(em, own(Measure::Height, high, 0.0)),
        );
        // Likewise from below and from the right.
        seen.gone |=
            self.fixed && (reach(bottom, height) >= height || reach(right, width) >= width);
    }

    /// Hides what is outside a box that cuts it off. `x` and `y` are the offsets of the element in
    /// its parent's box.
    fn shut_in(&self, seen: &mut InheritedStyle, x: f32, y: f32) {
        let em = seen.font;
        let own = |measures: [Measure; 2], whole: f32| {
            measures
                .iter()
                .filter_map(|measure| self.size.get(*measure as usize).copied().flatten())
                .map(|size| size.px(em, whole))
                .reduce(f32::min)
        };
        seen.gone |= x >= seen.room.0 || y >= seen.room.1;
        if seen.room.0 < f32::MAX {
            seen.room.0 -= x;
        }
        if seen.room.1 < f32::MAX {
            seen.room.1 -= y;
        }
        if self.grow != [None; 2] || self.fixed {
            seen.room = (f32::MAX, f32::MAX);
        }
        if let Some((width, height)) = self.view {
            seen.gone |= width <= 0.0 || height <= 0.0;
            // Letters may be positioned to end at the edge.
            seen.room = (1.25 * width, 1.25 * height);
        } else if self.cuts {
            let width = own([Measure::Width, Measure::MaxWidth], SCREEN.0);
            let height = own([Measure::Height, Measure::MaxHeight], SCREEN.1);
            seen.room = (
                seen.room.0.min(width.unwrap_or(f32::MAX)),
                seen.room.1.min(height.unwrap_or(f32::MAX)),
            );
            seen.gone |= self.border_box && (self.pad.px(em, SCREEN.0) >= seen.room.1);
        }
    }
}

fn put<T>(places: &mut [T], at: usize, value: T) {
    if let Some(place) = places.get_mut(at) {
        *place = value;
    }
}

/// Reports whether a declaration can hide something.
pub(super) fn hides(declared: &Declaration) -> bool {
    match *declared {
        Declaration::Display(hides) | Declaration::Vanish(_, hides) => hides,
        Declaration::Visibility(hides) => hides == Some(true),
        Declaration::Opacity(share) => share <= FAINT,
        Declaration::FontSize(size) => size.px(16.0, 16.0) <= TINY,
        Declaration::Zoom(by) => by <= 0.1,
        Declaration::Shift(Side::Left | Side::Top, Some(length))
        | Declaration::Margin(Side::Left | Side::Top, length)
        | Declaration::Indent(length) => length.px(16.0, SCREEN.0) <= FAR,
        Declaration::Translate(x, y) => x.px(16.0, BOX.0) <= FAR || y.px(16.0, BOX.1) <= FAR,
        Declaration::ZIndex(index) => index < 0,
        Declaration::Position(..)
        | Declaration::Overflow(true, _)
        | Declaration::Contained(true) => true,
        Declaration::Turned(hides) | Declaration::OneSided(hides) => hides,
        Declaration::Grow(_, by) => by <= 0.1,
        Declaration::Size(_, Some(length)) => length.px(16.0, 300.0) <= FLAT,
        _ => false,
    }
}
