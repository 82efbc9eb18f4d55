//! TCP, the little of it that two machines need that talk about a power cut.
//! Every wait has an end, since the other side may be cut off in the middle of
//! anything.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

/// A place where others can call.
#[derive(Debug)]
pub struct TcpServer(TcpListener);

impl TcpServer {
    /// Listens at `HOST:PORT`; port 0 is any that is free.
    pub fn bind(address: &str) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        crate::host::long_queue(&listener);
        Ok(Self(listener))
    }

    /// Returns the address that it listens at, as `HOST:PORT`.
    pub fn address(&self) -> io::Result<String> {
        Ok(self.0.local_addr()?.to_string())
    }

    /// Returns true if only this machine can connect.
    pub fn is_loopback(&self) -> io::Result<bool> {
        Ok(self.0.local_addr()?.ip().is_loopback())
    }

    /// Returns the next connection; `None` if there is none. One that the client
    /// has closed already is not returned.
    pub fn accept(&self) -> io::Result<Option<Stream>> {
        match self.0.accept() {
            Ok((stream, _)) => {
                // Some systems hand this on.
                stream.set_nonblocking(false)?;
                Stream::new(stream).map(Some)
            }
            Err(error) if is_without_caller(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn is_without_caller(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted | ConnectionAborted | ConnectionReset)
}

/// A connection. What is written goes out at once.
#[derive(Debug)]
pub struct Stream(TcpStream);

impl Stream {
    fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self(stream))
    }

    /// Calls `HOST:PORT`, each of its addresses in turn, and gives up after
    /// `timeout`.
    pub fn connect(address: &str, timeout: Duration) -> io::Result<Self> {
        let until = Instant::now() + timeout;
        let mut last = io::Error::new(io::ErrorKind::NotFound, "that name has no address");
        for address in address.to_socket_addrs()? {
            match connect(&address, until) {
                Ok(stream) => return Self::new(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// The same connection, for another thread.
    pub fn second(&self) -> io::Result<Self> {
        Ok(Self(self.0.try_clone()?))
    }

    /// Returns the address of the other end.
    pub fn peer(&self) -> String {
        self.0
            .peer_addr()
            .map_or_else(|_| "an unknown address".to_owned(), |address| address.to_string())
    }

    /// Reads until the target is full, or until a moment: then it fails with
    /// `TimedOut`, however little by little the other side has sent.
    pub fn read_until(&self, mut target: &mut [u8], until: Option<Instant>) -> io::Result<()> {
        while !target.is_empty() {
            self.0.set_read_timeout(left(until)?)?;
            match (&self.0).read(target) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => target = &mut target[bytes..],
                Err(error) => wait_on(error)?,
            }
        }
        Ok(())
    }

    /// Writes all of it, or fails with `TimedOut` at a moment, however little by
    /// little the other side takes it.
    pub fn write_until(&self, mut data: &[u8], until: Instant) -> io::Result<()> {
        while !data.is_empty() {
            self.0.set_write_timeout(left(Some(until))?)?;
            match (&self.0).write(data) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => data = &data[bytes..],
                Err(error) => wait_on(error)?,
            }
        }
        Ok(())
    }

    /// Ends all reading behind what has arrived before; last words can still be
    /// sent.
    pub fn end_reading(&self) {
        // It might have ended already, which is the aim.
        let _ = self.0.shutdown(Shutdown::Read);
    }

    /// Ends the connection for all who hold it. What has arrived before can
    /// still be read.
    pub fn end(&self) {
        // It might have ended already, which is the aim.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

fn connect(address: &SocketAddr, until: Instant) -> io::Result<TcpStream> {
    match left(Some(until))? {
        Some(left) => TcpStream::connect_timeout(address, left),
        None => TcpStream::connect(address),
    }
}

/// Returns the time until a deadline; `None` if there is no deadline. Fails with
/// `TimedOut` if it has passed.
fn left(until: Option<Instant>) -> io::Result<Option<Duration>> {
    let Some(until) = until else { return Ok(None) };
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::Error::new(io::ErrorKind::TimedOut, "the other side does not answer"));
    }
    Ok(Some(left))
}

/// Returns `Ok` if an error means to check the deadline and go on, otherwise the error.
fn wait_on(error: io::Error) -> io::Result<()> {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    match error.kind() {
        Interrupted | TimedOut | WouldBlock => Ok(()),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Stream, Stream) {
        let listener = TcpServer::bind("127.0.0.1:0").unwrap();
        assert!(listener.is_loopback().unwrap());
        assert!(listener.accept().unwrap().is_none());
        let address = listener.address().unwrap();
        let own_end = Stream::connect(&address, Duration::from_secs(60)).unwrap();
        loop {
            if let Some(peer_end) = listener.accept().unwrap() {
                return (own_end, peer_end);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(30)
    }

    /// For what comes to pass, whatever else the machine does.
    fn in_time() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn a_wait_has_an_end_however_little_comes() {
        let (own_end, peer_end) = pair();
        own_end.write_until(b"ab", in_time()).unwrap();
        let mut target = [0; 3];
        // On a busy machine the first wait may be over before it has begun.
        while &target != b"ab\0" {
            let error = peer_end.read_until(&mut target, Some(soon())).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        }
        let much = vec![0; 64 << 20];
        let error = own_end.write_until(&much, soon()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "nobody reads");
    }

    #[test]
    fn an_end_is_received_behind_what_was_sent() {
        let (own_end, peer_end) = pair();
        own_end.write_until(b"last", in_time()).unwrap();
        own_end.second().unwrap().end();
        let mut target = [0; 4];
        peer_end.read_until(&mut target, None).unwrap();
        assert_eq!(&target, b"last");
        let error = peer_end.read_until(&mut target, None).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
