import assert from "node:assert/strict";
import { addressKey, ClientAddresses } from "../../mod/kit/client_address.ts";

const behindProxies = new ClientAddresses(["10.0.0.0/8", "192.168.1.7", "fd00::/8"]);
const direct = new ClientAddresses([]);

Deno.test("without trusted proxies a forwarded address is ignored", () => {
  assert.equal(direct.clientOf("203.0.113.5", "198.51.100.1"), "203.0.113.5");
});

for (
  const [name, peer, forwarded, client] of [
    ["no header", "10.0.0.1", null, "10.0.0.1"],
    ["one proxy", "10.0.0.1", "203.0.113.5", "203.0.113.5"],
    ["a chain of proxies", "10.0.0.1", "203.0.113.5, 192.168.1.7, 10.2.3.4", "203.0.113.5"],
    ["a client that invents a chain", "10.0.0.1", "1.1.1.1, 2.2.2.2, 203.0.113.5", "203.0.113.5"],
    ["a client that claims to be a proxy", "10.0.0.1", "1.1.1.1, 10.9.9.9, 203.0.113.5", "203.0.113.5"],
    ["a peer that is no proxy", "203.0.113.9", "1.1.1.1", "203.0.113.9"],
    ["a proxy known by its address only", "192.168.1.8", "1.1.1.1", "192.168.1.8"],
    ["text instead of an address", "10.0.0.1", "unknown", "10.0.0.1"],
    ["an empty header", "10.0.0.1", "", "10.0.0.1"],
    ["an address with a port", "10.0.0.1", "203.0.113.5:4711", "203.0.113.5"],
    ["an IPv6 address in brackets", "fd00::1", "[2001:db8::1]:4711", "2001:db8:0:0:0:0:0:1"],
    ["an IPv4 peer in IPv6 clothing", "::ffff:10.0.0.1", "203.0.113.5", "203.0.113.5"],
  ] as const
) {
  Deno.test(`client address with ${name}`, () =>
    assert.equal(behindProxies.clientOf(peer, forwarded), client));
}

for (const range of ["", "example.com", "10.0.0.0/33", "::/129", "10.0.0.0/8/8", "10.0.0.0/x", "10.0.0.0/"]) {
  Deno.test(`a trusted proxy cannot be ${JSON.stringify(range)}`, () => {
    assert.throws(() => new ClientAddresses([range]), TypeError);
  });
}

Deno.test("IPv6 clients are counted by /64, IPv4 clients by address, in any spelling", () => {
  assert.equal(addressKey("2001:DB8:0:1::1"), addressKey("2001:db8:0:1:ffff:ffff:ffff:ffff"));
  assert.notEqual(addressKey("2001:db8:0:1::1"), addressKey("2001:db8:0:2::1"));
  assert.equal(addressKey("::ffff:203.0.113.5"), "203.0.113.5");
  assert.equal(addressKey("::ffff:cb00:7105"), "203.0.113.5");
  assert.notEqual(addressKey("203.0.113.5"), addressKey("203.0.113.6"));
  assert.equal(addressKey("/run/app.sock"), "/run/app.sock");
});
