//! Converts the channels of colours between colour spaces (CSS Color 4, 17 and 18). Red, green and
//! blue are from 0 to 1.

/// Returns hue in degrees, saturation and lightness.
pub(super) fn to_hsl([r, g, b]: [f32; 3]) -> (f32, f32, f32) {
    let maximum = r.max(g).max(b);
    let minimum = r.min(g).min(b);
    let chroma = maximum - minimum;
    let light = f32::midpoint(maximum, minimum);
    if chroma == 0.0 {
        return (0.0, 0.0, light);
    }
    let sixth = if maximum == r {
        ((g - b) / chroma).rem_euclid(6.0)
    } else if maximum == g {
        (b - r) / chroma + 2.0
    } else {
        (r - g) / chroma + 4.0
    };
    (
        sixth * 60.0,
        chroma / (1.0 - (2.0 * light - 1.0).abs()),
        light,
    )
}

pub(super) fn to_oklab(rgb: [f32; 3]) -> [f32; 3] {
    let [r, g, b] = rgb.map(|n| {
        if n <= 0.040_45 {
            n / 12.92
        } else {
            ((n + 0.055) / 1.055).powf(2.4)
        }
    });
    let l = (0.412_221_47 * r + 0.536_332_54 * g + 0.051_445_993 * b).cbrt();
    let m = (0.211_903_5 * r + 0.680_699_5 * g + 0.107_396_96 * b).cbrt();
    let s = (0.088_302_46 * r + 0.281_718_84 * g + 0.629_978_7 * b).cbrt();
    [
        0.210_454_26 * l + 0.793_617_8 * m - 0.004_072_047 * s,
        1.977_998_5 * l - 2.428_592_2 * m + 0.450_593_7 * s,
        0.025_904_037 * l + 0.782_771_77 * m - 0.808_675_77 * s,
    ]
}

pub(super) fn hsl(hue: f32, saturation: f32, light: f32) -> [f32; 3] {
    let amplitude = saturation * light.min(1.0 - light);
    [0.0, 8.0, 4.0].map(|n| {
        let k = (n + hue * 12.0) % 12.0;
        light - amplitude * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0)
    })
}

/// Converts the lightness of CIE Lab to that of Oklab, closely enough to compare colours.
pub(super) fn lightness(light: f32) -> f32 {
    let y = if light > 0.08 {
        ((light + 0.16) / 1.16).powi(3)
    } else {
        light / 9.033
    };
    y.max(0.0).cbrt()
}

pub(super) fn oklab(light: f32, a: f32, b: f32) -> [f32; 3] {
    let l = (light + 0.396_337_78 * a + 0.215_803_76 * b).powi(3);
    let m = (light - 0.105_561_346 * a - 0.063_854_17 * b).powi(3);
    let s = (light - 0.089_484_18 * a - 1.291_485_5 * b).powi(3);
    [
        4.076_741_7 * l - 3.307_711_6 * m + 0.230_969_94 * s,
        -1.268_438 * l + 2.609_757_4 * m - 0.341_319_38 * s,
        -0.004_196_086_3 * l - 0.703_418_6 * m + 1.707_614_7 * s,
    ]
    .map(|n| gamma(n.clamp(0.0, 1.0)))
}

pub(super) fn gamma(n: f32) -> f32 {
    if n <= 0.003_130_8 {
        n * 12.92
    } else {
        1.055 * n.powf(1.0 / 2.4) - 0.055
    }
}
