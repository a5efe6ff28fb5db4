//! The binary format that the build writes and the gateway reads.

/// Writes a record. Numbers are little-endian.
#[derive(Default)]
#[allow(dead_code, reason = "the build writes what the gateway reads")]
pub(crate) struct Writer(pub(crate) Vec<u8>);

#[allow(dead_code, reason = "the build writes what the gateway reads")]
impl Writer {
    /// Appends a 64-bit number.
    pub(crate) fn long(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    /// Appends a number below 2^32 - 1.
    pub(crate) fn number(&mut self, number: usize) {
        self.0
            .extend(u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
    }

    /// Appends an optional length.
    pub(crate) fn length(&mut self, length: Option<usize>) {
        self.number(length.unwrap_or(usize::MAX));
    }

    /// Appends a boolean.
    pub(crate) fn flag(&mut self, flag: bool) {
        self.0.push(u8::from(flag));
    }

    /// Appends a text, preceded by its length.
    pub(crate) fn text(&mut self, text: &[u8]) {
        self.number(text.len());
        self.0.extend(text);
    }

    /// Appends 32-bit numbers, preceded by their count.
    pub(crate) fn numbers(&mut self, numbers: &[u32]) {
        self.number(numbers.len());
        numbers
            .iter()
            .for_each(|number| self.0.extend(number.to_le_bytes()));
    }

    /// Appends texts, preceded by their count.
    pub(crate) fn texts(&mut self, texts: &[impl AsRef<[u8]>]) {
        self.number(texts.len());
        texts.iter().for_each(|text| self.text(text.as_ref()));
    }
}

/// Reads the rest of a record. Each method returns `None` at its end.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'t>(pub(crate) &'t [u8]);

impl<'t> Reader<'t> {
    /// Reads the next `count` bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'t [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    /// Reads a 64-bit number.
    pub(crate) fn long(&mut self) -> Option<u64> {
        self.bytes(8)?
            .first_chunk()
            .map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// Reads a 32-bit number.
    pub(crate) fn number(&mut self) -> Option<u32> {
        self.bytes(4)?
            .first_chunk()
            .map(|bytes| u32::from_le_bytes(*bytes))
    }

    /// Reads an optional length.
    pub(crate) fn length(&mut self) -> Option<Option<usize>> {
        self.number()
            .map(|length| (length != u32::MAX).then_some(length as usize))
    }

    /// Reads a boolean.
    pub(crate) fn flag(&mut self) -> Option<bool> {
        self.bytes(1).map(|flag| flag != [0])
    }

    /// Reads a text.
    pub(crate) fn text(&mut self) -> Option<&'t [u8]> {
        let length = self.number()?;
        self.bytes(length as usize)
    }

    /// Reads 32-bit numbers, and returns each as its bytes.
    pub(crate) fn numbers(&mut self) -> Option<&'t [[u8; 4]]> {
        let count = self.number()? as usize;
        self.bytes(count.checked_mul(4)?)
            .map(|bytes| bytes.as_chunks().0)
    }

    /// Reads texts.
    pub(crate) fn texts(&mut self) -> Option<Vec<&'t [u8]>> {
        (0..self.number()?).map(|_| self.text()).collect()
    }
}
