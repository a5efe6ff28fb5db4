//! The combined effect of all declarations for one element, and what it then inherits and shows.

use super::colour::{Colour, Paint};
use super::declare::{Blend, Block, Declaration, Measure, Side};
use super::value::{Length, SCREEN};

/// The style of an element by itself; `None` for properties that were not set.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnStyle {
    pub(crate) hidden: bool,
    pub(crate) colour: Option<Paint>,
    pub(crate) background: Option<Paint>,
    display_none: bool,
    /// One bit for each [`super::declare::HidingProperty`].
    hiding_bits: u16,
    visibility: Option<Option<bool>>,
    opacity: Option<f32>,
    font_size: Option<Length>,
    zoom: Option<f32>,
    line_height: Option<Length>,
    fill: Option<Option<Paint>>,
    stroke: Option<Option<Paint>>,
    image: Option<Option<Paint>>,
    clip_text: bool,
    dark: Option<bool>,
    is_positioned: bool,
    fixed: bool,
    /// Left, top, right, bottom.
    shift: [Option<Length>; 4],
    margin: [Length; 4],
    indent: Length,
    translate: (Length, Length),
    overflow: bool,
    cuts: bool,
    contained: bool,
    padding_top: Length,
    border_box: bool,
    /// The factors of `transform` and of `scale`.
    scales: [Option<f32>; 2],
    turned: bool,
    backface_hidden: bool,
    view_box: Option<(f32, f32)>,
    pub(super) animation: Option<Box<str>>,
    /// Width, height, maximum width and height, rows, columns.
    size: [Option<Length>; 6],
    behind: bool,
    blend: Blend,
}

/// The style that an element passes on to its content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InheritedStyle {
    pub(crate) hidden: bool,
    pub(crate) colour: Option<Colour>,
    pub(crate) background: Colour,
    /// Whether the background may be painted by something that is not known here.
    pub(crate) uncertain_background: bool,
    /// Whether the text colour was set, rather than left to something that is not known here.
    pub(crate) sets_colour: bool,
    invisible: bool,
    font_size: f32,
    line_height: f32,
    opacity: f32,
    x: f32,
    y: f32,
    fill: Option<Option<Colour>>,
    /// The outline of the letters; the inner `None` is an unknown colour.
    stroke: Option<Option<Colour>>,
    /// How much of the size is left.
    scale: f32,
    /// How far to the right and down content is still visible, in pixels.
    visible_area: (f32, f32),
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
        hidden: false,
        colour: Some(Colour::BLACK),
        background: Colour::WHITE,
        uncertain_background: false,
        sets_colour: false,
        invisible: false,
        font_size: 16.0,
        line_height: f32::MAX,
        opacity: 1.0,
        x: 0.0,
        y: 0.0,
        fill: None,
        stroke: None,
        scale: 1.0,
        visible_area: (f32::MAX, f32::MAX),
    };

    /// Reports whether a person does not see text with this style.
    pub(crate) fn hides_text(&self) -> bool {
        self.hidden
            || self.invisible
            || self.font_size <= TINY
            || self.font_size * self.scale <= TINY
            || self.opacity <= FAINT
            || self.x <= FAR
            || self.x >= FAR_RIGHT
            || self.y <= FAR
            || (!self.uncertain_background && self.blends_in())
    }

    /// Reports whether that depends on something that is not known here.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.uncertain_background && self.sets_colour && self.blends_in()
    }

    fn blends_in(&self) -> bool {
        let letters = self.fill.unwrap_or(self.colour);
        let blends = |colour: Option<Colour>| {
            colour.is_some_and(|colour| colour.is_indistinguishable_from(self.background))
        };
        blends(letters) && self.stroke.is_none_or(blends)
    }
}

impl OwnStyle {
    /// Applies a declaration. If it is not certain to apply, it counts only if it can hide
    /// something.
    pub(super) fn apply(&mut self, declaration: &Declaration, is_certain: bool) {
        use Declaration as D;
        if !is_certain && !can_hide(declaration) {
            return;
        }
        match *declaration {
            D::Display(none) => self.display_none = none,
            D::Visibility(hidden) => self.visibility = Some(hidden),
            D::Opacity(share) => self.opacity = Some(share),
            D::FontSize(size) => self.font_size = Some(size),
            D::Zoom(by) => self.zoom = Some(by),
            D::LineHeight(height) => self.line_height = Some(height),
            D::Hide(property, true) => self.hiding_bits |= 1 << property as u16,
            D::Hide(property, false) => self.hiding_bits &= !(1 << property as u16),
            D::Colour(paint) => self.colour = Some(paint),
            D::Fill(paint) => self.fill = Some(paint),
            D::Stroke(stroke) => self.stroke = Some(stroke),
            D::Background(paint) => self.background = Some(paint),
            D::Image(image) => self.image = Some(image),
            D::ClipText(clip) => self.clip_text = clip,
            D::Scheme(dark) => self.dark = Some(dark),
            D::Position(placed, fixed) => (self.is_positioned, self.fixed) = (placed, fixed),
            D::Shift(side, length) => set_at(&mut self.shift, side as usize, length),
            D::Margin(side, length) => set_at(&mut self.margin, side as usize, length),
            D::Indent(length) => self.indent = length,
            D::Translate(x, y) => self.translate = (x, y),
            D::Overflow(clips, cuts) => (self.overflow, self.cuts) = (clips, cuts),
            D::Contained(contained) => self.contained = contained,
            D::PaddingTop(top) => self.padding_top = top,
            D::BorderBox(border) => self.border_box = border,
            D::Scale(transform, by) => set_at(&mut self.scales, usize::from(!transform), Some(by)),
            D::Turned(turned) => self.turned = turned,
            D::BackfaceHidden(one_sided) => self.backface_hidden = one_sided,
            D::ViewBox(width, height) => self.view_box = Some((width, height)),
            D::Animation(ref words) => {
                let before = self.animation.take().unwrap_or_default();
                self.animation = Some(format!("{before} {words}").into());
            }
            D::Size(measure, length) => set_at(&mut self.size, measure as usize, length),
            D::ZIndex(index) => self.behind = index < 0,
            D::Blend(blend) => self.blend = blend,
            D::All => {
                *self = Self {
                    hidden: self.hidden,
                    colour: self.colour.map(|_| Paint::Inherit),
                    ..Self::default()
                }
            }
            D::Custom(..) | D::Unresolved(..) => {}
        }
    }

    /// Applies declarations that all others override.
    pub(crate) fn apply_hint(&mut self, declarations: &str) {
        Block::read(declarations)
            .normal
            .iter()
            .for_each(|declaration| self.apply(declaration, true));
    }

    /// Returns the style of an element with this look within another.
    pub(crate) fn resolve_within(&self, parent: &InheritedStyle) -> InheritedStyle {
        let mut style = *parent;
        style.font_size = self.font_size.map_or(parent.font_size, |size| {
            size.px(parent.font_size, parent.font_size)
        }) * self.zoom.unwrap_or(1.0);
        style.line_height = self.line_height.map_or(parent.line_height, |line| {
            line.px(style.font_size, style.font_size)
        });
        style.invisible = self.visibility.unwrap_or(None).unwrap_or(parent.invisible);
        style.opacity = parent.opacity * self.opacity.unwrap_or(1.0);
        self.apply_colours(&mut style, parent);
        let is_cramped = self.overflow
            && (self.contained
                || self.is_flat(style.font_size)
                || style.line_height <= FLAT
                || self.indent.px(style.font_size, 1000.0) >= 900.0);
        let letters = style
            .fill
            .unwrap_or(style.colour)
            .map_or(0.5, Colour::light);
        let is_blended = match self.blend {
            Blend::Normal => false,
            Blend::Lighter => {
                letters < 0.2 || (parent.background.light() > 0.9 && !parent.uncertain_background)
            }
            Blend::Darker => {
                letters > 0.9 || (parent.background.light() < 0.1 && !parent.uncertain_background)
            }
            Blend::Difference => letters < 0.1,
        };
        let is_away = self.hidden
            || self.display_none
            || self.hiding_bits != 0
            || (self.turned && self.backface_hidden);
        style.hidden |= is_away || is_cramped || is_blended || (self.behind && self.is_positioned);
        style.scale *= self.scales.iter().flatten().product::<f32>();
        self.apply_position(&mut style);
        style
    }

    fn is_flat(&self, font: f32) -> bool {
        self.size
            .iter()
            .flatten()
            .any(|length| length.px(font, 300.0) <= FLAT)
    }

    fn apply_colours(&self, style: &mut InheritedStyle, parent: &InheritedStyle) {
        if let Some(dark) = self.dark.filter(|_| !parent.sets_colour) {
            // The screen itself follows the colour scheme.
            (style.background, style.colour) = if dark {
                (Colour([0.07, 0.07, 0.07, 1.0]), Some(Colour::WHITE))
            } else {
                (parent.background, parent.colour)
            };
        }
        match self.colour {
            Some(Paint::Known(colour)) => (style.colour, style.sets_colour) = (Some(colour), true),
            Some(Paint::Unknown) => style.colour = None,
            Some(Paint::Current | Paint::Inherit) | None => {}
        }
        let own_colour = style.colour;
        let resolve = |paint: Paint, inherited: Option<Colour>| match paint {
            Paint::Known(colour) => Some(colour),
            Paint::Current => own_colour,
            Paint::Inherit => inherited,
            Paint::Unknown => None,
        };
        if let Some(fill) = self.fill {
            style.fill = fill.map(|paint| resolve(paint, parent.fill.unwrap_or(parent.colour)));
            style.sets_colour |= fill.is_some();
        }
        if let Some(stroke) = self.stroke {
            style.stroke = stroke
                .map(|paint| resolve(paint, None))
                .filter(|stroke| stroke.is_none_or(|line| line.alpha() > 0.1));
        }
        let ground = match self.background {
            Some(Paint::Inherit) => Some(Some(parent.background)),
            Some(paint) => Some(resolve(paint, None)),
            None => None,
        };
        let image = self.image.flatten().map(|paint| resolve(paint, None));
        if self.clip_text {
            // The letters show what would be behind them.
            let is_transparent = style
                .fill
                .unwrap_or(style.colour)
                .is_some_and(|colour| colour.alpha() < 0.1);
            if is_transparent {
                style.fill = Some(image.or(ground).unwrap_or(Some(Colour::CLEAR)));
            }
            return;
        }
        match ground {
            Some(Some(colour)) if colour.alpha() > 0.02 => {
                style.background = colour.paint_over(parent.background);
                style.uncertain_background = parent.uncertain_background && colour.alpha() < 0.9;
            }
            Some(None) => style.uncertain_background = true,
            Some(Some(_)) | None => {}
        }
        match image {
            Some(Some(colour)) => {
                (style.background, style.uncertain_background) = (
                    colour.paint_over(style.background),
                    style.uncertain_background && colour.alpha() < 0.9,
                )
            }
            // Behind an image that does not load is the colour that is specified with it.
            Some(None) => {
                style.uncertain_background |=
                    !matches!(ground, Some(Some(colour)) if colour.alpha() > 0.9)
            }
            None => {}
        }
    }

    fn apply_position(&self, style: &mut InheritedStyle) {
        let em = style.font_size;
        let (width, height) = SCREEN;
        if self.fixed {
            (style.x, style.y) = (0.0, 0.0);
            style.visible_area = (width, height);
        }
        let [left, top, right, bottom] = self.shift.map(|side| side.filter(|_| self.is_positioned));
        let outward = |far: f32, whole: f32| if far >= whole { -far } else { 0.0 };
        match (left, right) {
            (Some(left), _) => style.x += left.px(em, width),
            (None, Some(right)) => {
                let far = right.px(em, width);
                style.hidden |= far <= FAR;
                style.x += outward(far, width);
            }
            (None, None) => {}
        }
        match (top, bottom) {
            (Some(top), _) => {
                let far = top.px(em, height);
                style.hidden |= self.fixed && far >= 2.0 * height;
                // Further down only means further to scroll.
                style.y += far.min(height);
            }
            (None, Some(bottom)) => {
                let far = bottom.px(em, height);
                style.hidden |= far <= FAR;
                style.y += outward(far, 2.0 * height);
            }
            (None, None) => {}
        }
        let [margin_left, margin_top, ..] = self.margin;
        let (x, y) = self.translate;
        let own_size = |measure: Measure, whole: f32, otherwise: f32| {
            self.size
                .get(measure as usize)
                .copied()
                .flatten()
                .map_or(otherwise, |size| size.px(em, whole))
        };
        style.x += margin_left.px(em, width)
            + self.indent.px(em, width)
            + x.px(em, own_size(Measure::Width, width, BOX.0));
        style.y += margin_top.px(em, height).min(height)
            + y.px(em, own_size(Measure::Height, height, BOX.1))
                .min(height);
        style.hidden |= y.px(em, 0.0) >= 5.0 * height;
        let or_screen = |room: f32, screen: f32| if room < f32::MAX { room } else { screen };
        let available_width = or_screen(style.visible_area.0, width);
        let available_height = or_screen(style.visible_area.1, height);
        let resolve =
            |side: Option<Length>, whole: f32| side.map_or(0.0, |side| side.px(em, whole));
        self.clip_to_box(
            style,
            resolve(left, available_width)
                + margin_left.px(em, available_width)
                + x.px(em, own_size(Measure::Width, available_width, 0.0)),
            resolve(top, available_height)
                + margin_top.px(em, available_height)
                + y.px(em, own_size(Measure::Height, available_height, 0.0)),
        );
        // Likewise from below and from the right.
        style.hidden |=
            self.fixed && (resolve(bottom, height) >= height || resolve(right, width) >= width);
    }

    /// Hides what is outside a box that cuts it off. `x` and `y` are the offsets of the element in
    /// its parent's box.
    fn clip_to_box(&self, style: &mut InheritedStyle, x: f32, y: f32) {
        let em = style.font_size;
        let own_size = |measures: [Measure; 2], whole: f32| {
            measures
                .iter()
                .filter_map(|measure| self.size.get(*measure as usize).copied().flatten())
                .map(|size| size.px(em, whole))
                .reduce(f32::min)
        };
        style.hidden |= x >= style.visible_area.0 || y >= style.visible_area.1;
        if style.visible_area.0 < f32::MAX {
            style.visible_area.0 -= x;
        }
        if style.visible_area.1 < f32::MAX {
            style.visible_area.1 -= y;
        }
        if self.scales != [None; 2] || self.fixed {
            style.visible_area = (f32::MAX, f32::MAX);
        }
        if let Some((width, height)) = self.view_box {
            style.hidden |= width <= 0.0 || height <= 0.0;
            // Letters may be positioned to end at the edge.
            style.visible_area = (1.25 * width, 1.25 * height);
        } else if self.cuts {
            let width = own_size([Measure::Width, Measure::MaxWidth], SCREEN.0);
            let height = own_size([Measure::Height, Measure::MaxHeight], SCREEN.1);
            style.visible_area = (
                style.visible_area.0.min(width.unwrap_or(f32::MAX)),
                style.visible_area.1.min(height.unwrap_or(f32::MAX)),
            );
            style.hidden |=
                self.border_box && (self.padding_top.px(em, SCREEN.0) >= style.visible_area.1);
        }
    }
}

fn set_at<T>(slots: &mut [T], at: usize, value: T) {
    if let Some(slot) = slots.get_mut(at) {
        *slot = value;
    }
}

/// Reports whether a declaration can hide something.
pub(super) fn can_hide(declaration: &Declaration) -> bool {
    match *declaration {
        Declaration::Display(hides) | Declaration::Hide(_, hides) => hides,
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
        Declaration::Turned(hides) | Declaration::BackfaceHidden(hides) => hides,
        Declaration::Scale(_, by) => by <= 0.1,
        Declaration::Size(_, Some(length)) => length.px(16.0, 300.0) <= FLAT,
        _ => false,
    }
}
