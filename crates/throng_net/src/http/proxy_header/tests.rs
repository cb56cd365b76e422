use proptest::prelude::*;
use proxy_header::{ParseConfig, Protocol, ProxiedAddress, ProxyHeader, Tlv};

use super::*;

/// A header as the other implementation writes it.
fn header(source: SocketAddr, target: SocketAddr, extension: &[u8]) -> Vec<u8> {
    let mut header = ProxyHeader::with_address(ProxiedAddress::stream(source, target));
    if !extension.is_empty() {
        header.append_tlv(Tlv::Noop(extension.len()));
    }
    let mut bytes = Vec::new();
    header.encode_v2(&mut bytes).unwrap();
    bytes
}

/// What the other implementation reads, as far as this one supports it.
fn other_decoder(bytes: &[u8]) -> Option<(Option<SocketAddr>, usize)> {
    let config = ParseConfig {
        include_tlvs: true,
        allow_v1: false,
        allow_v2: true,
    };
    let (header, length) = ProxyHeader::parse(bytes, config).ok()?;
    if length > PROXY_HEADER_BYTES_MAX {
        return None;
    }
    let Some(address) = header.proxied_address() else {
        return Some((None, length));
    };
    let source = SocketAddr::new(address.source.ip().to_canonical(), address.source.port());
    (address.protocol == Protocol::Stream).then_some((Some(source), length))
}

fn address() -> impl Strategy<Value = SocketAddr> {
    let v4 = any::<([u8; 4], u16)>().prop_map(SocketAddr::from);
    let v6 = any::<([u8; 16], u16)>().prop_map(SocketAddr::from);
    prop_oneof![v4, v6]
}

proptest! {
    #[test]
    fn address_of_another_implementation_is_read(
        source in address(),
        target in address(),
        extension in prop::collection::vec(any::<u8>(), 0..300),
        after in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        prop_assume!(source.is_ipv4() == target.is_ipv4());
        let mut bytes = header(source, target, &extension);
        let length = bytes.len();
        bytes.extend(&after);
        let read = SocketAddr::new(source.ip().to_canonical(), source.port());
        prop_assert_eq!(decode_proxy_header(&bytes).unwrap(), (Some(read), length));
        for cut in 0..length {
            let error = decode_proxy_header(&bytes[..cut]).unwrap_err();
            prop_assert!(matches!(error, ProxyHeaderError::Incomplete(_)), "{}: {}", cut, error);
        }
    }

    #[test]
    fn both_implementations_accept_the_same_bytes(
        command in prop_oneof![Just(0x20_u8), Just(0x21), any::<u8>()],
        family in prop_oneof![Just(0x00_u8), Just(0x11), Just(0x21), Just(0x31), any::<u8>()],
        length in prop_oneof![0_u16..300, any::<u16>()],
        rest in prop::collection::vec(any::<u8>(), 0..300),
        flipped in prop::option::of((0_usize..12, any::<u8>())),
    ) {
        let mut bytes = SIGNATURE.to_vec();
        if let Some((place, byte)) = flipped {
            bytes[place] = byte;
        }
        bytes.extend([command, family]);
        bytes.extend(length.to_be_bytes());
        bytes.extend(&rest);
        let read = decode_proxy_header(&bytes).ok();
        // The family of the proxy's own connections is ignored: section 2.2, LOCAL.
        if command != 0x20 {
            prop_assert_eq!(read, other_decoder(&bytes));
        } else if flipped.is_none() {
            let length = usize::from(length);
            let is_whole = length <= rest.len();
            prop_assert_eq!(read, is_whole.then_some((None, HEAD_BYTES + length)));
        }
    }

    #[test]
    fn any_bytes_are_a_header_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        prop_assert!(decode_proxy_header(&bytes).is_err());
    }
}

#[test]
fn errors_say_what_was_found() {
    let of = |bytes: &[u8]| decode_proxy_header(bytes).unwrap_err().to_string();
    let with = |tail: &[u8]| of(&[&SIGNATURE[..], tail].concat());
    for (error, expected) in [
        (of(b"GET / HTTP/1.1\r\nHost: x\r\n"), "found something else"),
        (of(b"PROXY TCP4 192.0.2.1 192.0.2.2 5 6\r\n"), "version 1"),
        (with(&[0x31, 0x11, 0, 12]), "0x31"),
        (with(&[0x22, 0x11, 0, 12]), "0x22"),
        (with(&[0x21, 0x12, 0, 12]), "0x12"),
        (with(&[0x21, 0x11, 0, 11]), "at least 12"),
        (with(&[0x21, 0x11, 0xff, 0xff]), "at most 4096"),
    ] {
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn mapped_address_counts_as_ipv4() {
    let mapped = SocketAddr::from(([0, 0, 0, 0, 0, 0xffff, 0xc000, 0x0207], 5));
    let bytes = header(mapped, mapped, &[]);
    let (source, _) = decode_proxy_header(&bytes).unwrap();
    assert_eq!(source, Some("192.0.2.7:5".parse().unwrap()));
}

#[test]
fn bytes_after_the_header_are_not_read() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let source = "192.0.2.7:5".parse().unwrap();
        let bytes = [&header(source, source, b"more")[..], b"GET /"].concat();
        let mut stream = &bytes[..];
        assert_eq!(read_proxy_header(&mut stream).await.unwrap(), Some(source));
        assert_eq!(stream, b"GET /");
        let cut = &mut &bytes[..20];
        let error = read_proxy_header(cut).await.unwrap_err();
        assert!(matches!(error, ProxyHeaderError::Io(_)), "{error}");
    });
}
