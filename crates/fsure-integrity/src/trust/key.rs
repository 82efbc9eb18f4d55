//! Keys and signatures in the formats of minisign.

use std::io::Cursor;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use blake2::digest::consts::U32;
use blake2::{Blake2b, Digest as _};
use minisign::{PublicKey, SecretKey, SecretKeyBox, SignatureBox};

use crate::model::SignedStatement;

/// Characters of a public key that is given as text: 42 bytes in base64.
const KEY_CHARACTERS: usize = 56;

/// Number, secret and public half in the bytes of a secret key.
const KEY: Range<usize> = 54..126;
/// Blake2b of the first two bytes and those.
const CHECKSUM: Range<usize> = 126..158;

/// A key that signatures are checked with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verifier(PublicKey);

/// A key that signs.
pub struct Signer {
    secret: SecretKey,
    public: PublicKey,
}

/// A secret key as it is stored, which may need a password.
pub struct LockedKey {
    text: String,
    /// True if the key is protected by a password.
    pub needs_password: bool,
}

/// Reason why a signature is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SignatureError {
    /// It is by another key, of that number.
    OtherKey(String),
    /// It is not a signature on this text.
    Invalid,
}

impl Verifier {
    /// The key in a `.pub` file, or its line of text alone.
    pub fn read(text: &str) -> Option<Self> {
        let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
        PublicKey::from_base64(line).ok().map(Self)
    }

    /// Returns true if a text is a key rather than the name of a file.
    pub fn is_text(text: &str) -> bool {
        text.len() == KEY_CHARACTERS && text.starts_with("RW") && Self::read(text).is_some()
    }

    /// The key's number as minisign shows it.
    pub fn id(&self) -> String {
        id_of(self.0.keynum())
    }

    /// The whole key, to know it again.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.to_bytes()
    }

    /// Checks a signature on a statement, trusted comment included.
    pub(crate) fn check(&self, seal: &SignedStatement) -> Result<(), SignatureError> {
        let signature =
            SignatureBox::from_string(&seal.signature).map_err(|_| SignatureError::Invalid)?;
        if signature.keynum() != self.0.keynum() {
            return Err(SignatureError::OtherKey(id_of(signature.keynum())));
        }
        let message = Cursor::new(seal.statement.as_bytes());
        minisign::verify(&self.0, &signature, message, true, false, false)
            .map_err(|_| SignatureError::Invalid)
    }
}

/// The number of the key that a signature names.
pub(crate) fn signer_of(seal: &SignedStatement) -> Option<String> {
    SignatureBox::from_string(&seal.signature).ok().map(|signature| id_of(signature.keynum()))
}

fn id_of(number: &[u8]) -> String {
    number.iter().rev().map(|byte| format!("{byte:02X}")).collect()
}

impl LockedKey {
    /// The content of a secret key's file; `None` if it is none.
    pub fn read(text: String) -> Option<Self> {
        let line = text.lines().nth(1)?.trim();
        let bytes = BASE64.decode(line).ok()?;
        // Two bytes each: the algorithm of the signature, that of the password.
        let needs_password = match bytes.get(..4)? {
            b"EdSc" => true,
            b"Ed\0\0" => false,
            _ => return None,
        };
        Some(Self { text, needs_password })
    }

    /// The key, with its password if it needs one; else why not.
    pub fn open(self, password: Option<String>) -> Result<Signer, String> {
        let key = |text: &str| SecretKeyBox::from_string(text).map_err(|error| error.to_string());
        let secret = match (self.needs_password, password) {
            (false, _) => key(&with_checksum(&self.text))?.into_unencrypted_secret_key(),
            (true, Some(password)) => key(&self.text)?.into_secret_key(Some(password)),
            (true, None) => return Err("it needs a password".to_owned()),
        };
        let secret = secret.map_err(|error| error.to_string())?;
        let public = PublicKey::from_secret_key(&secret).map_err(|error| error.to_string())?;
        Ok(Signer { secret, public })
    }
}

/// A key without password as `minisign -G -W` writes it has zeros in the place
/// of its checksum (0.11), which the library calls a corrupted key. Nothing is
/// lost by computing it: each signature is checked with the public half.
fn with_checksum(text: &str) -> String {
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    let Some(Ok(mut bytes)) = lines.get(1).map(|line| BASE64.decode(line.trim())) else {
        return text.to_owned();
    };
    if bytes.len() == CHECKSUM.end && bytes[CHECKSUM].iter().all(|byte| *byte == 0) {
        let mut hasher = Blake2b::<U32>::new();
        hasher.update(&bytes[..2]);
        hasher.update(&bytes[KEY]);
        bytes[CHECKSUM].copy_from_slice(&hasher.finalize());
        lines[1] = BASE64.encode(&bytes);
    }
    lines.join("\n")
}

impl Signer {
    /// Returns the key that checks its signatures.
    pub fn verifier(&self) -> Verifier {
        Verifier(self.public.clone())
    }

    /// Signs a statement. The comment is covered by the signature.
    pub(crate) fn sign(&self, statement: String, comment: &str) -> Result<SignedStatement, String> {
        let about = format!("signature from minisign secret key {}", self.verifier().id());
        let message = Cursor::new(statement.as_bytes());
        let public = Some(&self.public);
        let signed = minisign::sign(public, &self.secret, message, Some(comment), Some(&about));
        let signature = signed.map_err(|error| error.to_string())?.into_string();
        let seal = SignedStatement { statement, signature };
        match self.verifier().check(&seal) {
            Ok(()) => Ok(seal),
            Err(_) => Err("the new signature does not match its own key".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use minisign::KeyPair;

    pub(in crate::trust) fn signer() -> Signer {
        let KeyPair { pk: public, sk: secret } = KeyPair::generate_unencrypted_keypair().unwrap();
        Signer { secret, public }
    }

    #[test]
    fn a_signature_is_on_one_text_by_one_key() {
        let (signer, other) = (signer(), signer());
        let seal = signer.sign("text\n".to_owned(), "generation:1").unwrap();
        assert_eq!(signer.verifier().check(&seal), Ok(()));
        assert_eq!(signer_of(&seal), Some(signer.verifier().id()));
        let by_other = other.verifier().check(&seal);
        assert_eq!(by_other, Err(SignatureError::OtherKey(signer.verifier().id())));
        let text = SignedStatement { statement: "Text\n".to_owned(), ..seal.clone() };
        assert_eq!(signer.verifier().check(&text), Err(SignatureError::Invalid));
        let signature = seal.signature.replace("generation:1", "generation:2");
        let comment = SignedStatement { signature, ..seal };
        assert_eq!(signer.verifier().check(&comment), Err(SignatureError::Invalid));
        let none = SignedStatement { signature: String::new(), ..comment };
        assert_eq!(signer.verifier().check(&none), Err(SignatureError::Invalid));
    }

    #[test]
    fn a_key_is_distinguished_from_the_name_of_a_file() {
        let key = signer().verifier();
        let file = key.0.to_box().unwrap().into_string();
        let line = key.0.to_base64();
        assert_eq!((Verifier::read(&file), Verifier::read(&line)), (Some(key.clone()), Some(key)));
        assert!(Verifier::is_text(&line));
        for name in ["fsure.pub", "RW", &line[1..], &file] {
            assert!(!Verifier::is_text(name), "{name}");
        }
    }
}
