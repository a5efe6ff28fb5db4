//! Classes of bytes.

/// The class of a byte.
#[derive(Clone, Copy)]
pub(super) struct Class(u8);

impl Class {
    const JOINT: u8 = 1;
    const ESCAPE: u8 = 2;
    const HEX: u8 = 4;

    #[allow(clippy::indexing_slicing, reason = "there is a class for each byte")]
    pub(super) const fn from_byte(byte: u8) -> Self {
        Self(CLASSES[byte as usize])
    }

    /// Reports whether the byte may separate the pieces of a split secret: blanks, quotes,
    /// concatenation signs.
    pub(super) const fn is_joint(self) -> bool {
        self.0 & Self::JOINT != 0
    }

    /// Reports whether the byte is a hexadecimal digit.
    pub(super) fn is_hex(self) -> bool {
        self.0 & Self::HEX != 0
    }

    /// Reports whether an escape sequence may begin with the byte.
    pub(super) fn is_escape(self) -> bool {
        self.0 & Self::ESCAPE != 0
    }
}

#[allow(
    clippy::indexing_slicing,
    reason = "done by the compiler, which would say so"
)]
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let c = byte as u8;
        let mut class = 0;
        if matches!(
            c,
            b' ' | b'\t'
                | b'\r'
                | b'\n'
                | b'"'
                | b'\''
                | b'`'
                | b'\\'
                | b'+'
                | b','
                | b'&'
                | b'|'
                | b'('
                | b')'
                | b'['
                | b']'
        ) {
            class |= Class::JOINT;
        }
        if matches!(c, b'%' | b'\\' | b'&' | b'=') {
            class |= Class::ESCAPE;
        }
        if c.is_ascii_hexdigit() {
            class |= Class::HEX;
        }
        classes[byte] = class;
        byte += 1;
    }
    classes
};
