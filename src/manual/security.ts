/** Manual, topic `security`. */
import { page, points } from './text.ts';

export function securityText(): string {
  return page(
    'SECURITY',
    'Keys',
    points(
      'A key is PREFIX_live_ID_SECRET: the id (12 characters) is public and stands in lists and in the log; the secret (52 characters) has 225 random bits and a checksum. It is shown once, by "wirewatch key create"; only its SHA-256 is kept.',
      'A key reads the subscriptions it names, of one account, and nothing else. What is foreign and what does not exist get the same answer.',
      'The endpoints that give detections need the scope detections:read, GET /v1/schema/detection any. The scopes reports:read and exports:create can be given, but nothing uses them yet.',
      '"wirewatch key set" and "wirewatch key revoke" hold from the next request on; so does "wirewatch account suspend", which refuses all keys of an account (403) until it is resumed. A revoked key stays revoked.',
      'An access token (topic tokens) is signed, not stored, and lasts an hour. Its key is looked up for every request: whatever ends the key ends its tokens with it. Key ids are public, and token requests are counted by them before the secret is checked: somebody who knows one can use up its [limits] token_requests_per_minute. The key itself goes on working.',
      'A key that is to be exchanged: "wirewatch key rotate" makes a new one with the same rights, and the old one goes on for a week (--overlap). Cursors outlive their keys, so the client goes on where it stood. A key that has leaked: rotate it with --overlap 0, or revoke it.',
      '"wirewatch key list" and "wirewatch key show" say when each key, or a token of it, was last used, and how many rows it has read on this UTC day (last_used_at, rows_today in --json). They know it from usage.db, which is in no backup: a key without a date was not used since that file was made.',
      'The prefix is the setting [keys] prefix; changing it leaves older keys valid.',
    ),
    'Addresses',
    points(
      'A key made with --allow-address works from those addresses and networks only (403 from others).',
      "Behind a proxy every request comes from the proxy. [server] trusted_proxies names those whose X-Forwarded-For is believed, read from its right; nobody else is believed. Without it, addresses of keys are compared with the proxy's.",
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
      'Requests have limits: 32 KiB of request line and headers, 15 seconds for the headers and 30 for the whole request, a minute for a connection on which nothing moves, [server] max_connections connections at a time, [limits] requests_per_minute for each key.',
    ),
    'TLS',
    points(
      '[server] tls_certificate and tls_key name two PEM files: the certificate followed by those that lead to its root (a "full chain"), and its private key without a passphrase. Give the user of the appliance, and nobody else, the right to read the key. With both set it speaks https on its port, TLS 1.2 and 1.3, and nothing else: plain HTTP there is answered with 400.',
      'Both files are read every two seconds. A renewed pair, renamed or written in place, serves new connections from then on ("the certificate was renewed" in the log); open ones go on. SIGHUP has it look at once. Where the files do not fit together or cannot be read, the pair in use stays, and the alert "certificate not usable" says why.',
      'The alert "certificate expires" opens 14 days before the certificate ends.',
      'A client that does not come through leaves a line "tls failed" with the reason that TLS gives: an old version, or that it does not trust the certificate. A handshake may take 15 seconds, and counts as a connection from its start.',
      'To try it on one machine: openssl req -x509 -newkey rsa:2048 -nodes -days 90 -subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout key.pem -out cert.pem',
    ),
    'Files',
    points(
      'The data folder is made with mode 0700: what lies in it is guarded by that. Run the appliance as a user of its own.',
      'The file secret (32 random bytes) signs cursors, access tokens and the addresses of photos. Whoever has it can forge cursors and addresses, with access.db access tokens too, but no key. Without it every cursor that was given out is refused (400), and clients have to start again. So a start refuses to make a new one beside a database in use: put back the old one, which is in every backup (tar -xf BACKUP secret). Backups must be guarded as the folder is (topic backup).',
      'Who may write into the drop folder decides what the appliance reports. Links, pipes and folders in it are left alone, nothing is read or written outside it, and a file that is not an export ends in refused/ or failed/ with its reason.',
      'A data folder made by "wirewatch demo" is never served by "wirewatch serve", nor the other way round.',
    ),
    'The log and the executable',
    points(
      'A request is logged with its id, key id, path (without the query), status, rows and duration; never with a secret. What is named like a secret is blotted out in every line.',
      'The executable ignores NODE_OPTIONS and opens no debugger on a signal. The variables with which Node is made to debug (NODE_DEBUG, NODE_V8_COVERAGE and their like) are read by Node before the program: they add lines to the log or write files, but load no code, open no port and show no key. Do not set them for the appliance.',
      'The library of its database has to be a file to be loaded: it is written into the first folder that nobody else can write to or exchange, under the name of its SHA-256, and checked at every start; see the topic installation.',
    ),
  );
}
