//! Frames between the two machines, over the Noise protocol (`noiseprotocol.org`, revision 34)
//! as `snow` implements it. Both sides prove that they know the secret, and each frame is
//! encrypted under its number by a key of this connection and direction, so that a recorded
//! frame is never accepted again.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fsure_os::tcp::Stream;
use snow::{Builder, HandshakeState, StatelessTransportState};

/// The version of the protocol.
pub const VERSION: u32 = 2;

/// Both sides have fresh keys and one secret in common, which the first message proves: what
/// calls a witness without it gets nothing to guess tokens from.
const NOISE: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
/// Maximum bytes of a message of the Noise protocol, and so of a frame after its length.
const LENGTH_MAX: usize = u16::MAX as usize;
/// Bytes of an authentication tag.
const TAG: usize = 16;
/// Bytes of a message of the handshake: a public key, and a tag.
const HANDSHAKE: usize = 32 + TAG;
/// Bytes of a body that fit, with the type and the tag.
pub(super) const BODY_MAX: usize = LENGTH_MAX - 1 - TAG;
const MAGIC: [u8; 8] = *b"fsurecut";
/// Timeout for what the other side does at once.
pub(super) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageKind {
    Hello = 1,
    HelloReply,
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
    const ALL: [Self; 12] = [
        Self::Hello,
        Self::HelloReply,
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

struct Half {
    stream: Arc<Stream>,
    cipher: Arc<StatelessTransportState>,
    /// Number of the next frame.
    number: u64,
}

impl std::fmt::Debug for Half {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Half").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Sender {
    /// Sends a frame.
    pub(super) fn send(&mut self, kind: MessageKind, body: &[u8]) -> io::Result<()> {
        let frame = self.encrypt(kind, body)?;
        self.0.number += 1;
        put(&self.0.stream, &frame, Instant::now() + RESPONSE_TIMEOUT)
    }

    fn encrypt(&self, kind: MessageKind, body: &[u8]) -> io::Result<Vec<u8>> {
        let plain = [&[kind as u8], body].concat();
        let mut frame = vec![0; plain.len() + TAG];
        let length = self.0.cipher.write_message(self.0.number, &plain, &mut frame);
        frame.truncate(length.map_err(io::Error::other)?);
        Ok(frame)
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
        let frame = take(&self.0.stream, until)?;
        let mut plain = vec![0; frame.len()];
        let length = self.0.cipher.read_message(self.0.number, &frame, &mut plain);
        let length = length.map_err(|_| broken("a frame from another connection"))?;
        plain.truncate(length);
        self.0.number += 1;
        kind_and_body(plain)
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
            _ => Err(broken("an unexpected frame")),
        }
    }

    /// Ends the connection.
    pub(super) fn end(&self) {
        self.0.stream.end();
    }
}

/// Returns the two halves of a connection, once each side has proved that it knows the
/// secret: for the side that has called.
pub(super) fn call(stream: Stream, secret: &Secret) -> io::Result<(Sender, Receiver)> {
    let until = Instant::now() + RESPONSE_TIMEOUT;
    let mut noise = noise(secret)?.build_initiator().map_err(io::Error::other)?;
    put_greeting(&stream, MessageKind::Hello, &handshake_message(&mut noise)?, until)?;
    let reply = take_greeting(&stream, MessageKind::HelloReply, until);
    let reply = reply.map_err(|error| match error.kind() {
        // That is not a refusal: a witness that is overloaded or killed hangs up, too.
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
            let why = "it closed the connection, as it does if its token differs";
            io::Error::new(io::ErrorKind::ConnectionAborted, why)
        }
        _ => error,
    })?;
    if noise.read_message(&reply, &mut [0; HANDSHAKE]).is_err() {
        return Err(refused(b"the program that answers there does not know the token"));
    }
    halves(stream, noise)
}

/// Does the same for the side that was called.
pub(super) fn answer(
    stream: Stream,
    secret: &Secret,
    until: Instant,
) -> io::Result<(Sender, Receiver)> {
    let mut noise = noise(secret)?.build_responder().map_err(io::Error::other)?;
    let greeted = take_greeting(&stream, MessageKind::Hello, until);
    // A caller with another version gets the version of this side.
    if greeted.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
        put_greeting(&stream, MessageKind::HelloReply, &[], until)?;
    }
    if noise.read_message(&greeted?, &mut [0; HANDSHAKE]).is_err() {
        return Err(refused(b"another token"));
    }
    put_greeting(&stream, MessageKind::HelloReply, &handshake_message(&mut noise)?, until)?;
    halves(stream, noise)
}

/// Returns a handshake to begin. It covers the version, which goes before it in the clear.
fn noise(secret: &Secret) -> io::Result<Builder<'_>> {
    let parameters = NOISE.parse().map_err(io::Error::other)?;
    let builder = Builder::new(parameters).psk(0, &secret.0).map_err(io::Error::other)?;
    builder.prologue(PROLOGUE.as_flattened()).map_err(io::Error::other)
}

/// The bytes that each side sends before its first message, in blocks of 4.
const PROLOGUE: [[u8; 4]; 3] = {
    let [a, b, c, d, e, f, g, h] = MAGIC;
    [[a, b, c, d], [e, f, g, h], VERSION.to_le_bytes()]
};

fn handshake_message(noise: &mut HandshakeState) -> io::Result<Vec<u8>> {
    let mut message = vec![0; HANDSHAKE];
    let length = noise.write_message(&[], &mut message).map_err(io::Error::other)?;
    message.truncate(length);
    Ok(message)
}

fn halves(stream: Stream, noise: HandshakeState) -> io::Result<(Sender, Receiver)> {
    let cipher = Arc::new(noise.into_stateless_transport_mode().map_err(io::Error::other)?);
    let stream = Arc::new(stream);
    let half = || Half { stream: Arc::clone(&stream), cipher: Arc::clone(&cipher), number: 0 };
    Ok((Sender(half()), Receiver(half())))
}

fn put_greeting(
    stream: &Stream,
    kind: MessageKind,
    message: &[u8],
    until: Instant,
) -> io::Result<()> {
    put(stream, &[&[kind as u8], PROLOGUE.as_flattened(), message].concat(), until)
}

/// Returns the message of the handshake in a greeting.
fn take_greeting(stream: &Stream, expected: MessageKind, until: Instant) -> io::Result<Vec<u8>> {
    let (kind, body) = kind_and_body(take(stream, Some(until))?)?;
    let rest = body.strip_prefix(&MAGIC).filter(|_| kind == expected);
    let (version, message) = rest
        .and_then(|rest| rest.split_first_chunk::<4>())
        .ok_or_else(|| broken("the program that answers there is not 'fsure powercut'"))?;
    let version = u32::from_le_bytes(*version);
    if version != VERSION {
        let why = format!(
            "the other side speaks version {version} of the protocol, this program {VERSION}"
        );
        return Err(refused(why.as_bytes()));
    }
    Ok(message.to_vec())
}

fn put(stream: &Stream, frame: &[u8], until: Instant) -> io::Result<()> {
    let length = frame.len();
    assert!(length <= LENGTH_MAX, "{length} bytes are more than a frame can hold");
    stream.write_until(&[&(length as u32).to_le_bytes(), frame].concat(), until)
}

fn take(stream: &Stream, until: Option<Instant>) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_until(&mut length, until)?;
    let length = u32::from_le_bytes(length) as usize;
    if !(1..=LENGTH_MAX).contains(&length) {
        return Err(broken("a frame of an impossible length"));
    }
    let mut frame = vec![0; length];
    stream.read_until(&mut frame, until)?;
    Ok(frame)
}

fn kind_and_body(mut plain: Vec<u8>) -> io::Result<(MessageKind, Vec<u8>)> {
    let kind = plain.first().and_then(|kind| MessageKind::of(*kind));
    let kind = kind.ok_or_else(|| broken("a frame of an unknown type"))?;
    Ok((kind, plain.split_off(1)))
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
        let own_end = Stream::connect(&listener.address().unwrap(), RESPONSE_TIMEOUT).unwrap();
        loop {
            if let Some(peer_end) = listener.accept().unwrap() {
                return (own_end, peer_end);
            }
            std::thread::yield_now();
        }
    }

    fn soon() -> Option<Instant> {
        Some(Instant::now() + RESPONSE_TIMEOUT)
    }

    type Halves = io::Result<(Sender, Receiver)>;

    fn meet(client: &Secret, witness: &Secret) -> (Halves, Halves) {
        let (own_end, peer_end) = pair();
        std::thread::scope(|scope| {
            let answer = scope.spawn(|| answer(peer_end, witness, soon().unwrap()));
            (call(own_end, client), answer.join().unwrap())
        })
    }

    #[test]
    fn a_peer_with_the_secret_is_received() {
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
    fn a_peer_without_the_secret_is_refused() {
        let (client, witness) = meet(&Secret::new(b"one"), &Secret::new(b"another"));
        assert_eq!(witness.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        let error = client.unwrap_err();
        assert!(error.to_string().ends_with("token differs"), "{error}");
        assert_ne!(error.kind(), io::ErrorKind::PermissionDenied, "it may be tried again");
    }

    #[test]
    fn no_frame_is_accepted_twice_or_elsewhere_or_changed() {
        let secret = Secret::new(b"a token");
        for spoil in 0..6 {
            let (client, witness) = meet(&secret, &secret);
            let (mut sender, _) = client.unwrap();
            let (mut back, mut receiver) = witness.unwrap();
            sender.send(MessageKind::Records, b"one").unwrap();
            assert!(receiver.receive(soon()).is_ok());
            match spoil {
                // The next, which is right.
                0 => {}
                // The same again.
                1 => sender.0.number = 0,
                // One left out.
                2 => sender.0.number = 2,
                _ => {}
            }
            let mut frame = sender.encrypt(MessageKind::Records, b"one").unwrap();
            match spoil {
                // The other direction's key.
                3 => {
                    back.0.number = 1;
                    frame = back.encrypt(MessageKind::Records, b"one").unwrap();
                }
                4 => frame[1] ^= 1,
                5 => frame.truncate(TAG - 1),
                _ => {}
            }
            put(&sender.0.stream, &frame, soon().unwrap()).unwrap();
            let received = receiver.receive(soon()).map_err(|error| error.kind());
            let expected = (MessageKind::Records, b"one".to_vec());
            let expected = if spoil == 0 { Ok(expected) } else { Err(io::ErrorKind::InvalidData) };
            assert_eq!(received, expected, "{spoil}");
        }
    }

    /// A recorded greeting gets a reply, and no frame after it is of that connection.
    #[test]
    fn a_recorded_connection_opens_none() {
        let secret = Secret::new(b"a token");
        let (client, witness) = meet(&secret, &secret);
        let (sender, _) = client.unwrap();
        drop(witness);
        let frame = sender.encrypt(MessageKind::Ping, b"").unwrap();
        let mut noise = noise(&secret).unwrap().build_initiator().unwrap();
        let hello = handshake_message(&mut noise).unwrap();
        for _ in 0..2 {
            let (own_end, peer_end) = pair();
            put_greeting(&own_end, MessageKind::Hello, &hello, soon().unwrap()).unwrap();
            let (_, mut receiver) = answer(peer_end, &secret, soon().unwrap()).unwrap();
            put(&own_end, &frame, soon().unwrap()).unwrap();
            let error = receiver.receive(soon()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
        }
    }

    #[test]
    fn another_version_is_named_on_both_sides() {
        let (own_end, peer_end) = pair();
        let secret = Secret::new(b"a token");
        let greeting = [&[MessageKind::Hello as u8], &MAGIC[..], &1_u32.to_le_bytes(), &[0; 32]];
        put(&own_end, &greeting.concat(), soon().unwrap()).unwrap();
        let error = answer(peer_end, &secret, soon().unwrap()).unwrap_err();
        assert!(error.to_string().contains("speaks version 1"), "{error}");
        let reply = take(&own_end, soon()).unwrap();
        assert_eq!(reply, [&[2], &MAGIC[..], &VERSION.to_le_bytes()].concat());
    }

    #[test]
    fn garbage_is_no_frame() {
        for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 64], &[1, 0, 0, 0, 99], &[255; 64]] {
            let (own_end, peer_end) = pair();
            own_end.write_until(garbage, soon().unwrap()).unwrap();
            let secret = Secret::new(b"");
            let error = answer(peer_end, &secret, soon().unwrap()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{garbage:?}");
        }
    }
}
