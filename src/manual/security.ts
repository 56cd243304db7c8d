/** Manual, topic `security`. */
import { fenced, page, paragraph, points } from './text.ts';

/** For fail2ban: a test holds it against lines of the log. */
export const FAIL2BAN_FILTER = String.raw`
[Definition]
line = ^[^{]*\{"level":"info",(?:"time":"[^"]*")?,"request_id":"[^"]*","address":"<ADDR>",
failregex = %(line)s.*"code":"(?:unauthorized|invalid_client)","claimed_key_id":
            %(line)s.*"limit":"(?:unseen_key_ids|token_requests)"
datepattern = "time":"%%Y-%%m-%%dT%%H:%%M:%%S\.%%f%%z"
`;

export const FAIL2BAN_JAIL = `
[wirewatch]
enabled = true
filter = wirewatch
backend = systemd
journalmatch = _SYSTEMD_UNIT=wirewatch.service
port = http,https
findtime = 60
maxretry = 30
bantime = 3600
`;

export function securityText(): string {
  return page(
    'SECURITY',
    'Keys',
    points(
      'A key is PREFIX_live_ID_SECRET: the id (12 characters) is public and stands in lists and in the log; the secret (52 characters) has 225 random bits and a checksum. It is shown once, by "wirewatch key create"; only its SHA-256 is kept.',
      'A key reads the subscriptions it names, of one account, and nothing else.',
      'The endpoints that give detections need the scope detections:read, GET /v1/schema/detection any. The scopes reports:read and exports:create can be given, but nothing uses them yet.',
      '"wirewatch key set" and "wirewatch key revoke" hold from the next request on; so does "wirewatch account suspend", which refuses all keys of an account (403) until it is resumed. A revoked key stays revoked.',
      'An access token (topic tokens) is signed, not stored, and lasts an hour. Its key is looked up for every request: whatever ends the key ends its tokens with it. Key ids are public, and token requests are counted by them before the secret is checked. So a key id has two counts, each up to [limits] token_requests_per_minute: one for networks from which the key or one of its tokens was used within a day, and one for all others. Somebody who knows a key id uses up only the second. After a start no network is known until it uses a key or a token once; the key itself works all the time.',
      'A key that is to be exchanged: "wirewatch key rotate" makes a new one with the same rights, and the old one goes on for a week (--overlap). Cursors outlive their keys, so the client goes on where it stood. A key that has leaked: rotate it with --overlap 0, or revoke it.',
      '"wirewatch key list" and "wirewatch key show" say when each key, or a token of it, was last used, and how many rows it has read on this UTC day (last_used_at, rows_today in --json). They know it from usage.db, which is in no backup: a key without a date was not used since that file was made.',
      'The prefix is the setting [keys] prefix; changing it leaves older keys valid.',
    ),
    'What strangers can learn',
    points(
      'Whether a key id exists: not from the text of a refusal, and not from its time. A wrong secret takes the same steps with a known id as with an unknown one. Measured over loopback, 58,000 requests of each kind in turn, the medians differ by 0.06 µs (± 0.06) with a key, and by 0.00 µs (± 0.09) at POST /oauth/token. An answer takes 65 µs or more, and the middle half of the answers spans 8 µs or more.',
      'Whether a subscription or a detection of another account exists: no. The answer is the same, byte for byte but for its request id.',
      'What other customers receive: no. A cursor is one encrypted block (AES-256), so it shows neither positions nor times, and cannot be made up: one of 2^75 made-up cursors is valid.',
    ),
    'Addresses',
    points(
      'A key made with --allow-address works from those addresses and networks only (403 from others).',
      'Behind a proxy every request comes from the proxy. [server] trusted_proxies names those whose X-Forwarded-For is believed, read from its right; nobody else is believed. If it is empty and the appliance listens on an address of this machine alone, programs on this machine are believed, since only a proxy there can bring other clients; "none" turns that off.',
      'Such a proxy must set the header itself: nginx with "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;". Without that line nginx passes on what the client wrote, and clients choose their address. "wirewatch sample nginx.conf" prints a complete configuration.',
      'Behind a proxy that is not trusted, all clients count as one address, and addresses of keys are compared with that of the proxy. The alert "proxy not trusted" says so when the header comes from an internal address, and the log, once, when it comes from another.',
      'From one address (an IPv6 network of 64 bits counts as one), keys that were not used from there for a day can be tried [limits] unseen_key_ids_per_minute times a minute; more are 429 before anything is looked up. Keys in use there go on working. After a start every key is new once: where more clients than that share one address, raise the setting.',
    ),
    'Who changed what',
    points(
      '"wirewatch log --access" prints the audit trail: each change of an account, a subscription, a key or the pause of ingest, with its time, the user of the operating system, the user behind sudo, and the command. What a start creates from the configuration is marked "start". --json prints the old and the new value of every member, --from and --to limit it, --follow waits for more. It never shows a key or its hash.',
      'The trail is the log from which access.db is made (access-log/ in the data folder), so no change can be missing from it. It is written by whoever runs the commands: a user who may write to the data folder could forge it. To keep proof elsewhere, send the output of --follow to another machine.',
    ),
    'The network',
    points(
      'It listens on 127.0.0.1 unless told otherwise, and speaks plain HTTP unless it has a certificate (below): for others to reach it, give it one, or put a proxy with TLS in front. Where it can be reached from other machines without either, as far as the settings tell, the log and "wirewatch check" warn of it.',
      '[server] base_url is the address at which clients reach it. It stands in error types, and in the addresses of photos for which the export gives none. It is put in when a row is read: changing it changes no version.',
      'Requests have limits: 32 KiB of request line and headers, 15 seconds for the headers and 30 for the whole request, a minute for a connection on which nothing moves, [server] max_connections connections at a time and max_connections_per_address from one address, [limits] requests_per_minute for each key.',
      'Idle connections shut nobody out: where room is needed, for one address or for all, the connection that has been idle longest is closed. Proxies that are trusted are counted by max_connections alone. Many networks together can still take up all connections by sending requests slowly (each has 15 seconds): against that, a firewall or a proxy helps.',
    ),
    'TLS',
    points(
      '[server] tls_certificate and tls_key name two PEM files: the certificate followed by those that lead to its root (a "full chain"), and its private key without a passphrase. Give the user of the appliance, and nobody else, the right to read the key. With both set it speaks https on its port and nothing else: TLS 1.3, and TLS 1.2 with forward secrecy and authenticated encryption, without renegotiation; plain HTTP there is answered with 400.',
      'Both files are read every two seconds. A renewed pair, renamed or written in place, serves new connections from then on ("certificate renewed" in the log); open ones go on. SIGHUP has it look at once. "wirewatch sample certbot-hook.sh" prints what certbot needs to hand them over. Where the files do not fit together or cannot be read, the pair in use stays, and the alert "certificate not usable" says why.',
      'The alert "certificate expires" opens 14 days before the certificate ends.',
      'A client that does not come through leaves a line "tls failed" with the reason that TLS gives: an old version, or that it does not trust the certificate. A handshake may take 15 seconds, and counts as a connection from its start.',
      'To try it on one machine: openssl req -x509 -newkey rsa:2048 -nodes -days 90 -subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout key.pem -out cert.pem',
    ),
    'Files',
    points(
      'The data folder is made with mode 0700: what lies in it is guarded by that. Run the appliance as a user of its own.',
      'Root acts as the owner of the folder in commands that change it, with no way back, and does not serve the folder of another user. Nothing that is kept in the folder may be a link: a start and a command refuse it (exit code 78). The folder itself may be one.',
      'The keys that encrypt cursors and sign access tokens and addresses of photos are derived from the file secret (32 random bytes). Whoever has it can read and forge cursors and forge addresses, with access.db access tokens too, but no key. Without it every cursor that was given out is refused (400), and clients have to start again. So a start refuses to make a new one beside a database in use: put back the old one, which is in every backup (tar -xf BACKUP secret). Backups must be guarded as the folder is (topic backup).',
      'Who may write into the drop folder decides what the appliance reports. Links, pipes and folders in it are left alone, nothing is read or written outside it, and a file that is not an export ends in refused/ or failed/ with its reason.',
      'A data folder made by "wirewatch demo" is never served by "wirewatch serve", nor the other way round.',
    ),
    'Who asked',
    points(
      'Each request is one line of the log, "request": request_id, address (of the client), key_id, method, path (without the query), status, rows and duration_ms. It never holds a secret: what is named like one is blotted out in every line.',
      'The line of a refused request has code as well: unauthorized, forbidden, rate_limited and so on, at POST /oauth/token invalid_client and the like. If the key was not verified, claimed_key_id is the id that the request claimed. limit says which limit refused it: requests, token_requests, unseen_key_ids or daily_rows.',
      'What is no HTTP at all, or too large or too slow to be read, leaves a line "malformed request" with the address of the peer, which is the proxy where there is one.',
      'All requests of an address: journalctl -u wirewatch -o cat | jq -c \'select(.address == "192.0.2.7")\'. Those refused for a key: select(.claimed_key_id == "abcdefghij23").',
    ),
    paragraph(`
      fail2ban can keep out addresses that try out keys. It counts wrong keys and secrets, and requests over the limits
      that hold before a key is verified; not what a working client may get wrong. Write this to
      /etc/fail2ban/filter.d/wirewatch.conf:`),
    fenced('ini', FAIL2BAN_FILTER),
    paragraph(`
      and this to /etc/fail2ban/jail.d/wirewatch.conf. For a log file ([log] file), replace backend and journalmatch by
      logpath. Behind a proxy on another machine, fail2ban has to run there. A revoked key counts, too: a client that
      keeps using one is kept out after 30 requests in a minute.`),
    fenced('ini', FAIL2BAN_JAIL),
    'The log and the executable',
    points(
      'The executable ignores NODE_OPTIONS and opens no debugger on a signal. With NODE_DEBUG and NODE_DEBUG_NATIVE Node would write what passes through it to the log, parts of keys too: where one is set, the program starts again without it, as the same process. NODE_V8_COVERAGE and its like, which Node reads before the program, write files, but load no code, open no port and show no key. Do not set them for the appliance.',
      'The library of its database has to be a file to be loaded: it is written into the first folder that nobody else, no group either, can write to or exchange, under the name of its SHA-256, and checked at every start; see the topic installation.',
    ),
  );
}
