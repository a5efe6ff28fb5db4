//! Bytes that the build writes and the gateway reads.

/// A record that is being written. Numbers are little-endian.
#[derive(Default)]
#[allow(dead_code, reason = "the build writes what the gateway reads")]
pub(crate) struct Writer(pub(crate) Vec<u8>);

#[allow(dead_code, reason = "the build writes what the gateway reads")]
impl Writer {
    /// Adds a number of 64 bits.
    pub(crate) fn long(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    /// Adds a number below 2^32 - 1.
    pub(crate) fn number(&mut self, number: usize) {
        self.0
            .extend(u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
    }

    /// Adds a length, if there is one.
    pub(crate) fn length(&mut self, length: Option<usize>) {
        self.number(length.unwrap_or(usize::MAX));
    }

    /// Adds whether something holds.
    pub(crate) fn flag(&mut self, flag: bool) {
        self.0.push(u8::from(flag));
    }

    /// Adds a text after its length.
    pub(crate) fn text(&mut self, text: &[u8]) {
        self.number(text.len());
        self.0.extend(text);
    }

    /// Adds numbers of 32 bits after their count.
    pub(crate) fn numbers(&mut self, numbers: &[u32]) {
        self.number(numbers.len());
        numbers
            .iter()
            .for_each(|number| self.0.extend(number.to_le_bytes()));
    }

    /// Adds texts after their number.
    pub(crate) fn texts(&mut self, texts: &[impl AsRef<[u8]>]) {
        self.number(texts.len());
        texts.iter().for_each(|text| self.text(text.as_ref()));
    }
}

/// What is left to read of a table. Reading gives `None` at its end.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'t>(pub(crate) &'t [u8]);

impl<'t> Reader<'t> {
    /// The next bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'t [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    /// A number of 64 bits.
    pub(crate) fn long(&mut self) -> Option<u64> {
        self.bytes(8)?
            .first_chunk()
            .map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// A number of 32 bits.
    pub(crate) fn number(&mut self) -> Option<u32> {
        self.bytes(4)?
            .first_chunk()
            .map(|bytes| u32::from_le_bytes(*bytes))
    }

    /// A length, if there is one.
    pub(crate) fn length(&mut self) -> Option<Option<usize>> {
        self.number()
            .map(|length| (length != u32::MAX).then_some(length as usize))
    }

    /// Whether something holds.
    pub(crate) fn flag(&mut self) -> Option<bool> {
        self.bytes(1).map(|flag| flag != [0])
    }

    /// A text.
    pub(crate) fn text(&mut self) -> Option<&'t [u8]> {
        let length = self.number()?;
        self.bytes(length as usize)
    }

    /// Numbers of 32 bits, each as its bytes.
    pub(crate) fn numbers(&mut self) -> Option<&'t [[u8; 4]]> {
        let count = self.number()? as usize;
        self.bytes(count.checked_mul(4)?)
            .map(|bytes| bytes.as_chunks().0)
    }

    /// Texts.
    pub(crate) fn texts(&mut self) -> Option<Vec<&'t [u8]>> {
        (0..self.number()?).map(|_| self.text()).collect()
    }
}
