//! Frames between the two machines. Each is authenticated by a key that belongs to this
//! connection and direction only, and by its number, so that a recorded frame is never
//! accepted again.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fsure_os::tcp::Stream;

/// The version of the protocol.
pub const VERSION: u32 = 1;

/// Maximum bytes of a frame after its length.
const LENGTH_MAX: usize = 1 << 16;
/// Bytes of a body that fit, with the type and the MAC.
pub(super) const BODY_MAX: usize = LENGTH_MAX - 1 - MAC;
const MAC: usize = 16;
const MAGIC: [u8; 8] = *b"fsurecut";
/// Timeout for what the other side does at once.
pub(super) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageKind {
    Hello = 1,
    Challenge,
    Proof,
    Open,
    Welcome,
    Records,
    Ping,
    Recorded,
    Ask,
    Run,
    Owed,
    Done,
    Refused,
}

impl MessageKind {
    const ALL: [Self; 13] = [
        Self::Hello,
        Self::Challenge,
        Self::Proof,
        Self::Open,
        Self::Welcome,
        Self::Records,
        Self::Ping,
        Self::Recorded,
        Self::Ask,
        Self::Run,
        Self::Owed,
        Self::Done,
        Self::Refused,
    ];

    fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// Secret that only the two machines know.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl Secret {
    /// Derives the secret from a token. An empty token protects nothing, and lets every
    /// caller in.
    pub fn new(token: &[u8]) -> Self {
        Self(*blake3::hash(token).as_bytes())
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// The receiving half of a connection on which both sides have proved that they know the
/// secret.
#[derive(Debug)]
pub(super) struct Receiver(Half);

/// The sending half.
#[derive(Debug)]
pub(super) struct Sender(Half);

#[derive(Debug)]
struct Half {
    stream: Arc<Stream>,
    key: [u8; 32],
    /// Number of the next frame.
    number: u64,
}

impl Half {
    fn mac(&self, kind: u8, body: &[u8]) -> [u8; MAC] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&self.number.to_le_bytes()).update(&[kind]).update(body);
        hasher.finalize().as_bytes()[..MAC].try_into().expect("16 bytes")
    }
}

impl Sender {
    /// Sends a frame.
    pub(super) fn send(&mut self, kind: MessageKind, body: &[u8]) -> io::Result<()> {
        let mac = self.0.mac(kind as u8, body);
        self.0.number += 1;
        put(&self.0.stream, kind, body, &mac, Instant::now() + RESPONSE_TIMEOUT)
    }

    /// Sends a refusal with the reason. If that fails, the other side has gone.
    pub(super) fn refuse(&mut self, why: &str) {
        let _ = self.send(MessageKind::Refused, why.as_bytes());
    }
}

impl Receiver {
    /// Receives the next frame; waits until a moment, or without a limit if that is
    /// `None`.
    pub(super) fn receive(&mut self, until: Option<Instant>) -> io::Result<(MessageKind, Vec<u8>)> {
        let (kind, mut body) = take(&self.0.stream, until)?;
        let at = body.len().checked_sub(MAC).ok_or_else(|| broken("a frame without its MAC"))?;
        let mac: [u8; MAC] = body[at..].try_into().expect("16 bytes");
        body.truncate(at);
        // The comparison of hashes takes the same time wherever they differ.
        if blake3_of(self.0.mac(kind as u8, &body)) != blake3_of(mac) {
            return Err(broken("a frame that is not of this connection"));
        }
        self.0.number += 1;
        Ok((kind, body))
    }

    /// Receives the next frame, which must be of this type. A refusal is an error of the
    /// kind `PermissionDenied` with its text.
    pub(super) fn expect(
        &mut self,
        expected: MessageKind,
        until: Option<Instant>,
    ) -> io::Result<Vec<u8>> {
        match self.receive(until)? {
            (kind, body) if kind == expected => Ok(body),
            (MessageKind::Refused, body) => Err(refused(&body)),
            _ => Err(broken("a frame out of its turn")),
        }
    }

    /// Ends the connection.
    pub(super) fn end(&self) {
        self.0.stream.end();
    }
}

/// Pads a MAC to a hash, whose comparison takes the same time wherever they differ.
fn blake3_of(mac: [u8; MAC]) -> blake3::Hash {
    let mut whole = [0; 32];
    whole[..MAC].copy_from_slice(&mac);
    blake3::Hash::from_bytes(whole)
}

/// Returns the two halves of a connection, once each side has proved that it knows the
/// secret: for the side that has called.
pub(super) fn call(stream: Stream, secret: &Secret) -> io::Result<(Sender, Receiver)> {
    let until = Instant::now() + RESPONSE_TIMEOUT;
    let nonce = nonce()?;
    put(&stream, MessageKind::Hello, &greeting(nonce), &[], until)?;
    let theirs = greeted(&stream, MessageKind::Challenge, until)?;
    let keys = Keys::new(secret, &nonce, &theirs);
    put(&stream, MessageKind::Proof, &keys.client_proof, &[], until)?;
    let proof = take(&stream, Some(until)).map_err(|error| match error.kind() {
        // That is not a refusal: a witness that is overloaded or killed hangs up, too.
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
            let why = "it has hung up, as it does if it has another token";
            io::Error::new(io::ErrorKind::ConnectionAborted, why)
        }
        _ => error,
    })?;
    if !is_proof(&proof, keys.witness_proof) {
        return Err(refused(b"what answers there does not know the token"));
    }
    Ok(halves(stream, keys.client_frames, keys.witness_frames))
}

/// Does the same for the side that was called.
pub(super) fn answer(
    stream: Stream,
    secret: &Secret,
    until: Instant,
) -> io::Result<(Sender, Receiver)> {
    let greeted = greeted(&stream, MessageKind::Hello, until);
    let nonce = nonce()?;
    // A caller with another version gets the version of this side, too.
    if greeted.as_ref().err().is_none_or(|error| error.kind() == io::ErrorKind::PermissionDenied) {
        put(&stream, MessageKind::Challenge, &greeting(nonce), &[], until)?;
    }
    let theirs = greeted?;
    let keys = Keys::new(secret, &theirs, &nonce);
    if !is_proof(&take(&stream, Some(until))?, keys.client_proof) {
        return Err(refused(b"another token"));
    }
    put(&stream, MessageKind::Proof, &keys.witness_proof, &[], until)?;
    Ok(halves(stream, keys.witness_frames, keys.client_frames))
}

fn halves(stream: Stream, send: [u8; 32], receive: [u8; 32]) -> (Sender, Receiver) {
    let stream = Arc::new(stream);
    let half = |key| Half { stream: Arc::clone(&stream), key, number: 0 };
    (Sender(half(send)), Receiver(half(receive)))
}

fn is_proof((kind, body): &(MessageKind, Vec<u8>), proof: [u8; 32]) -> bool {
    let body: Option<[u8; 32]> = body.as_slice().try_into().ok();
    *kind == MessageKind::Proof && body.is_some_and(|body| blake3::Hash::from(body) == proof)
}

struct Keys {
    client_proof: [u8; 32],
    witness_proof: [u8; 32],
    client_frames: [u8; 32],
    witness_frames: [u8; 32],
}

impl Keys {
    fn new(secret: &Secret, client: &[u8; 32], witness: &[u8; 32]) -> Self {
        let material = [secret.0, *client, *witness].concat();
        Self {
            client_proof: blake3::derive_key("fsure powercut 1 client proof", &material),
            witness_proof: blake3::derive_key("fsure powercut 1 witness proof", &material),
            client_frames: blake3::derive_key("fsure powercut 1 client frames", &material),
            witness_frames: blake3::derive_key("fsure powercut 1 witness frames", &material),
        }
    }
}

fn nonce() -> io::Result<[u8; 32]> {
    let mut nonce = [0; 32];
    getrandom::fill(&mut nonce).map_err(io::Error::other)?;
    Ok(nonce)
}

fn greeting(nonce: [u8; 32]) -> Vec<u8> {
    [&MAGIC[..], &VERSION.to_le_bytes(), &nonce].concat()
}

fn greeted(stream: &Stream, expected: MessageKind, until: Instant) -> io::Result<[u8; 32]> {
    let (kind, body) = take(stream, Some(until))?;
    let rest = body.strip_prefix(&MAGIC).filter(|_| kind == expected);
    let (version, nonce) = rest
        .and_then(|rest| rest.split_first_chunk::<4>())
        .ok_or_else(|| broken("what is there is no 'fsure powercut'"))?;
    let version = u32::from_le_bytes(*version);
    if version != VERSION {
        let why = format!(
            "the other side speaks version {version} of the protocol, this program {VERSION}"
        );
        return Err(refused(why.as_bytes()));
    }
    nonce.try_into().map_err(|_| broken("what is there is no 'fsure powercut'"))
}

fn put(
    stream: &Stream,
    kind: MessageKind,
    body: &[u8],
    mac: &[u8],
    until: Instant,
) -> io::Result<()> {
    let length = 1 + body.len() + mac.len();
    assert!(length <= LENGTH_MAX, "{length} bytes are no frame");
    let head = [&(length as u32).to_le_bytes()[..], &[kind as u8]].concat();
    stream.write_until(&[&head, body, mac].concat(), until)
}

fn take(stream: &Stream, until: Option<Instant>) -> io::Result<(MessageKind, Vec<u8>)> {
    let mut head = [0; 5];
    stream.read_until(&mut head, until)?;
    let (length, kind) = head.split_first_chunk::<4>().expect("4 bytes and 1");
    let length = u32::from_le_bytes(*length) as usize;
    if !(1..=LENGTH_MAX).contains(&length) {
        return Err(broken("a frame of a length that none has"));
    }
    let kind = MessageKind::of(kind[0]).ok_or_else(|| broken("a frame of a type that none has"))?;
    let mut body = vec![0; length - 1];
    stream.read_until(&mut body, until)?;
    Ok((kind, body))
}

/// Returns the error for something that does not follow the protocol.
pub(super) fn broken(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Returns the error for something that is useless to try again.
pub(super) fn refused(why: &[u8]) -> io::Error {
    let why = String::from_utf8_lossy(why).into_owned();
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fsure_os::tcp::TcpServer;

    fn pair() -> (Stream, Stream) {
        let listener = TcpServer::bind("127.0.0.1:0").unwrap();
        let ours = Stream::connect(&listener.address().unwrap(), RESPONSE_TIMEOUT).unwrap();
        loop {
            if let Some(theirs) = listener.accept().unwrap() {
                return (ours, theirs);
            }
            std::thread::yield_now();
        }
    }

    fn soon() -> Option<Instant> {
        Some(Instant::now() + RESPONSE_TIMEOUT)
    }

    type Halves = io::Result<(Sender, Receiver)>;

    fn meet(client: &Secret, witness: &Secret) -> (Halves, Halves) {
        let (ours, theirs) = pair();
        std::thread::scope(|scope| {
            let answer = scope.spawn(|| answer(theirs, witness, soon().unwrap()));
            (call(ours, client), answer.join().unwrap())
        })
    }

    #[test]
    fn who_knows_the_secret_is_heard() {
        let secret = Secret::new(b"a token");
        let (client, witness) = meet(&secret, &secret);
        let (mut sender, _) = client.unwrap();
        let (mut back, mut receiver) = witness.unwrap();
        let long = vec![7; BODY_MAX];
        sender.send(MessageKind::Ping, b"").unwrap();
        let sends = std::thread::scope(|scope| {
            let sends = scope.spawn(|| sender.send(MessageKind::Records, &long));
            assert_eq!(receiver.receive(soon()).unwrap(), (MessageKind::Ping, vec![]));
            assert_eq!(receiver.receive(soon()).unwrap(), (MessageKind::Records, long.clone()));
            sends.join().unwrap()
        });
        sends.unwrap();
        back.refuse("no");
    }

    #[test]
    fn who_does_not_is_not() {
        let (client, witness) = meet(&Secret::new(b"one"), &Secret::new(b"another"));
        assert_eq!(witness.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        let error = client.unwrap_err();
        assert!(error.to_string().ends_with("another token"), "{error}");
        assert_ne!(error.kind(), io::ErrorKind::PermissionDenied, "it may be tried again");
    }

    #[test]
    fn no_frame_is_accepted_twice_or_elsewhere_or_changed() {
        let secret = Secret::new(b"a token");
        for spoil in 0..4 {
            let (client, witness) = meet(&secret, &secret);
            let (sender, _) = client.unwrap();
            let (_back, mut receiver) = witness.unwrap();
            let frame = |sender: &Sender, body: &[u8]| {
                let mac = sender.0.mac(MessageKind::Records as u8, body);
                put(&sender.0.stream, MessageKind::Records, body, &mac, soon().unwrap()).unwrap();
            };
            frame(&sender, b"one");
            assert!(receiver.receive(soon()).is_ok());
            let mut other = Sender(Half { number: 1, ..sender.0 });
            match spoil {
                // The next, which is right.
                0 => {}
                // The same again.
                1 => other.0.number = 0,
                // One left out.
                2 => other.0.number = 2,
                // The other direction's key.
                _ => other.0.key = receiver.0.key.map(|byte| byte ^ 1),
            }
            frame(&other, b"one");
            let heard = receiver.receive(soon()).map_err(|error| error.kind());
            let expected = (MessageKind::Records, b"one".to_vec());
            let expected = if spoil == 0 { Ok(expected) } else { Err(io::ErrorKind::InvalidData) };
            assert_eq!(heard, expected, "{spoil}");
        }
    }

    #[test]
    fn garbage_is_no_frame() {
        for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 64], &[1, 0, 0, 0, 99], &[255; 64]] {
            let (ours, theirs) = pair();
            ours.write_until(garbage, soon().unwrap()).unwrap();
            let secret = Secret::new(b"");
            let error = answer(theirs, &secret, soon().unwrap()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{garbage:?}");
        }
    }
}
