/** Settings: the order of their sources, errors, the annotated file, and entries of accounts, subscriptions and keys. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { Value } from '@sinclair/typebox/value';
import { annotatedConfig } from '../../src/config/annotated.ts';
import { isInTheClear } from '../../src/config/listening.ts';
import { type ConfigSources, loadConfig } from '../../src/config/load.ts';
import { readSecretFiles } from '../../src/config/preseed.ts';
import { SETTINGS, SETTINGS_SCHEMA } from '../../src/config/schema.ts';
import { ACCOUNT, folder, generated, HASH, KEY, SUBSCRIPTION, TERMS, written } from '../support/preseed.ts';
import { refusal as refused } from '../support/refusal.ts';
import { words } from '../support/words.ts';

const load = (sources: Partial<ConfigSources>) =>
  loadConfig({ ...{ flags: {}, env: {}, file: undefined, dataFolder: folder }, ...sources });

/** The error message of an invalid configuration. */
const refusal = (sources: Partial<ConfigSources>) => refused('configuration', () => load(sources));
const refusalOfFile = (text: string) => refusal({ file: written(text) });
const refusalOfVariable = (name: string, value: string) => refusal({ env: { [name]: value } });

test('the annotated file equals the one in config/, shows every default, and loads to the defaults', () => {
  const file = path.join(import.meta.dirname, '../../config/wirewatch.toml');
  const text = readFileSync(file, 'utf8');
  assert.equal(text, annotatedConfig());
  const sections = new Map(text.split(/^\[/m).map((block) => [block.split(']')[0], block]));
  for (const setting of SETTINGS) {
    const line = `\n${setting.name} = ${JSON.stringify(setting.schema.default)}\n`;
    assert.ok(sections.get(setting.section)?.includes(line), setting.path);
  }
  const [loaded, defaults] = [load({ file }), load({})];
  assert.deepEqual(loaded, { ...defaults, configFile: file, given: loaded.given });
  assert.equal(defaults.configFile, null);
  assert.deepEqual(Object.values(defaults.limits), [120, 10, 30, 1_000_000]);
});

test('every setting has a description, a default of its type, and a variable', () => {
  assert.ok(SETTINGS.length > 15);
  assert.equal(new Set(SETTINGS.map((setting) => setting.variable)).size, SETTINGS.length);
  for (const setting of SETTINGS) {
    assert.ok(setting.description.length > 10, setting.path);
    assert.ok(Value.Check(setting.schema, setting.schema.default), setting.path);
  }
  assert.equal(Value.Check(SETTINGS_SCHEMA, Value.Create(SETTINGS_SCHEMA)), true);
});

test('flag, then environment, then file, then default', () => {
  const file = written('[server]\nport = 1\nhost = "10.0.0.1"\nmax_connections = 7\n');
  const env = { WIREWATCH_SERVER_PORT: '2', WIREWATCH_SERVER_HOST: '10.0.0.2' };
  const { server } = load({ file, env, flags: { port: '3' } });
  assert.deepEqual([server.port, server.host, server.max_connections], [3, '10.0.0.2', 7]);
});

test('settings of each type can be set in the environment', () => {
  const env = {
    WIREWATCH_EXPORTS_NEWSWIRE_ENABLED: 'false',
    WIREWATCH_INGEST_RESCAN_SECONDS: '0.25',
    WIREWATCH_INGEST_BAD_ROWS: 'skip',
    WIREWATCH_SERVER_TRUSTED_PROXIES: '10.0.0.0/8, ::1',
  };
  const { exports, ingest, server } = load({ env });
  const { rescan_seconds, bad_rows } = ingest;
  assert.deepEqual([exports.newswire.enabled, rescan_seconds, bad_rows], [false, 0.25, 'skip']);
  assert.deepEqual(server.trusted_proxies, ['10.0.0.0/8', '::1']);
});

test('which file: the flag, then WIREWATCH_CONFIG, then wirewatch.toml in the data folder', () => {
  const dataFolder = path.join(folder, 'data');
  mkdirSync(dataFolder);
  writeFileSync(path.join(dataFolder, 'wirewatch.toml'), '[server]\nport = 1\n');
  const env = { WIREWATCH_CONFIG: written('[server]\nport = 2\n') };
  const file = written('[server]\nport = 3\n');
  assert.equal(load({ dataFolder }).server.port, 1);
  assert.equal(load({ dataFolder, env: { WIREWATCH_CONFIG: '' } }).server.port, 1);
  assert.equal(load({ dataFolder, env }).server.port, 2);
  assert.equal(load({ dataFolder, env, file }).server.port, 3);
});

test('a named file that cannot be read is refused with its path', () => {
  const missing = path.join(folder, 'missing.toml');
  assert.match(refusal({ file: missing }), /missing\.toml: no such file/);
  assert.match(refusal({ env: { WIREWATCH_CONFIG: missing } }), /missing\.toml: no such file/);
  assert.match(refusal({ file: folder }), /it is a folder/);
  assert.match(refusal({ file: written(new Uint8Array([0x61, 0xff])) }), /not UTF-8/);
  assert.match(refusal({ file: written(`# ${'x'.repeat(1024 * 1024)}`) }), /larger than 1 MiB/);
});

test('a malformed file is refused with its line', () => {
  const file = written('[server]\nport = \n');
  assert.ok(refusal({ file }).startsWith(`${file}:2:`));
  assert.match(refusalOfFile('[server]\n__proto__ = 1\n'), /:2:1: /);
});

test('a wrong value is refused with its place, the expectation and the value', () => {
  const file = written('[ingest]\nquiet_ms = -5\n');
  const number = 'expected a whole number from 0 to';
  assert.equal(refusal({ file }), `${file}, [ingest] quiet_ms: ${number} 3,600,000, found -5`);
  assert.equal(refusal({ flags: { port: 'abc' } }), `--port: ${number} 65,535, found "abc"`);
  const trailer = 'WIREWATCH_INGEST_REQUIRE_TRAILER';
  assert.equal(refusalOfVariable(trailer, 'yes'), `${trailer}: expected true or false, found "yes"`);
  for (const [text, said] of [
    ['[ingest]\nbad_rows = "drop"\n', /expected one of "fail", "skip", found "drop"/],
    ['[server]\ntrusted_proxies = ["10.0.0.0/33"]\n', /found "10\.0\.0\.0\/33"/],
    ['[server]\nport = "8080"\n', /found "8080"/],
    ['[server]\nport = 80.5\n', /found 80\.5/],
    ['server = 1\n', /expected a section \[server\], found 1/],
    ['[[server]]\nport = 1\n', /expected a section \[server\], found a list/],
  ] as const)
    assert.match(refusalOfFile(text), said);
});

test('all problems are listed, also in overridden values', () => {
  const file = written('[server]\nport = -1\nprot = 1\n[keys]\nprefix = "W"\n');
  const message = refusal({ file, env: { WIREWATCH_LOG_LEVEL: 'loud' }, flags: { port: '80' } });
  assert.match(message, /^4 settings are invalid:\n/);
  for (const place of ['[server] port:', '[server] prot:', '[keys] prefix:', 'WIREWATCH_LOG_LEVEL:'])
    assert.ok(message.includes(place), place);
});

test('an unknown setting is refused, with a suggestion', () => {
  for (const [text, said] of [
    ['[ingest]\nquite_ms = 1\n', /\[ingest\] quite_ms: unknown setting; did you mean ingest\.quiet_ms\?/],
    ['quiet_ms = 1\n', /, quiet_ms: unknown setting; did you mean ingest\.quiet_ms\?/],
    ['[limit]\ndaily_rows = 1\n', /limit: unknown setting; did you mean limits\?/],
    ['[server]\nzzzzzzzzzzzz = 1\n', /zzzzzzzzzzzz: unknown setting$/],
    ['[mail]\nkeep = 1\n', /mail: unknown setting$/],
    ['[[account]]\nid = "a"\n', /account: unknown setting; did you mean accounts\?/],
    ['[exports.newswires]\nenabled = true\n', /did you mean exports\.newswire\?/],
    ['[server]\nconstructor = 1\n', /:2:1: /],
  ] as const)
    assert.match(refusalOfFile(text), said);
});

test('a variable of an unknown setting in a section is refused; others with the prefix are ignored', () => {
  const unknown = refusalOfVariable('WIREWATCH_LIMITS_REQUEST_PER_MINUTE', '1');
  assert.match(unknown, /^\w+: unknown setting; did you mean WIREWATCH_LIMITS_REQUESTS_PER_MINUTE\?$/);
  load({
    env: {
      WIREWATCH_PORT: 'tcp://10.0.0.1:8080',
      WIREWATCH_PORT_8080_TCP_ADDR: '10.0.0.1',
      WIREWATCH_SERVICE_HOST: '10.0.0.1',
      WIREWATCH_SERVICE_PORT: '8080',
      WIREWATCH_DATA: folder,
      WIREWATCH_ADDON_DIR: folder,
      WIREWATCH_DEBUG: '1',
    },
  });
});

test('values of variables and flags are parsed strictly', () => {
  for (const [name, values, said, ...others] of [
    ['SERVER_PORT', '+80 0x50 8e1 080 80.0 tcp://10.0.0.1:80', /PORT: expected a whole/, '', ' 80', '80 '],
    ['EXPORTS_IMAGEWIRE_ENABLED', 'TRUE 1 on', /expected true or false/, ''],
    ['INGEST_TRUNCATED_SECONDS', '0 -1 .5 1e3 Infinity NaN', /expected a number above 0/],
    ['SERVER_HOST', '127.0.0.1:80 [::1] http://a 1.2.3 -a', /WIREWATCH_SERVER_HOST: expected/, ''],
    ['SERVER_TRUSTED_PROXIES', '10.0.0.0/8/8 10.0.0.0/ ::/129 a.example 10.0.0.0/08 10.0.0.1,', /a list in/],
    ['KEYS_PREFIX', 'W 1a a_b a2345678901234567', /expected a lower-case letter/, ''],
    ['INGEST_EARLIEST_TIME', '2001-01-01 2001-02-30T00:00:00Z 2001-01-01T00:00:00+00:00', /a time in UTC/],
  ] as const)
    for (const value of [...words(values), ...others])
      assert.match(refusalOfVariable(`WIREWATCH_${name}`, value), said, value);
  for (const host of ['0.0.0.0', '::', '::1', 'localhost', 'wire-1.example'])
    assert.equal(load({ flags: { host } }).server.host, host);
});

test('the base address is absolute http(s), without user, query or fragment; a trailing slash is removed', () => {
  const baseUrl = (text: string) => load({ flags: { baseUrl: text } }).server.base_url;
  assert.equal(baseUrl('https://api.example.com/'), 'https://api.example.com');
  assert.equal(baseUrl('https://API.example.com:443/wire/watch//'), 'https://api.example.com/wire/watch');
  assert.equal(baseUrl('http://[::1]:8080'), 'http://[::1]:8080');
  assert.equal(baseUrl(''), '');
  const wrong = `api.example.com //api.example.com ftp://a.example https:/a.example https:// https://a.example?
    https://a.example/?q=1 https://a.example/# /v1`;
  for (const text of [...words(wrong), 'https://a.example/ b'])
    assert.match(refusal({ flags: { baseUrl: text } }), /^--base-url: expected empty, or an absolute/);
  const withUser = 'https://me:hunter2@a.example';
  assert.doesNotMatch(refusal({ flags: { baseUrl: withUser } }), /hunter2/);
  assert.doesNotMatch(refusalOfVariable('WIREWATCH_COPY_ENDPOINT', withUser), /hunter2/);
});

test('a wrong alert command, which may have a secret, is not repeated', () => {
  const secret = 'hook-4711';
  const list = /command: expected a list in which each item is text, found something else$/i;
  for (const command of [`"notify ${secret}"`, `["notify", { token = "${secret}" }]`]) {
    const message = refusalOfFile(`[alerts]\ncommand = ${command}\n`);
    assert.match(message, list);
    assert.ok(!message.includes(secret), message);
  }
  assert.match(refusalOfVariable('WIREWATCH_ALERTS_COMMAND', `notify,${secret.repeat(1000)}`), list);
});

test('without trusted proxies, loopback is trusted if only loopback can connect', () => {
  const trusted = (WIREWATCH_SERVER_HOST: string, WIREWATCH_SERVER_TRUSTED_PROXIES: string) =>
    load({ env: { WIREWATCH_SERVER_HOST, WIREWATCH_SERVER_TRUSTED_PROXIES } }).server.trusted_proxies;
  for (const host of ['127.0.0.1', '127.1.2.3', '::1', 'localhost']) {
    const found = ['', 'none', '10.0.0.9'].map((proxies) => trusted(host, proxies));
    assert.deepEqual(found, [['127.0.0.0/8', '::1'], [], ['10.0.0.9']], host);
  }
  for (const host of ['0.0.0.0', '::', '10.0.0.1', 'wire.example.org'])
    assert.deepEqual([trusted(host, ''), trusted(host, 'none,127.0.0.1')], [[], ['127.0.0.1']], host);
});

test('keys are unencrypted on the network without certificate and proxy, but not on loopback', () => {
  const inTheClear = (host: string, more = '') =>
    isInTheClear(load({ file: written(`[server]\nhost = "${host}"\n${more}`) }).server);
  for (const host of ['0.0.0.0', '::', '10.0.0.1', 'wire.example.org']) {
    assert.ok(inTheClear(host), host);
    assert.ok(!inTheClear(host, 'trusted_proxies = ["10.0.0.9"]\n'), host);
    assert.ok(!inTheClear(host, 'tls_certificate = "c.pem"\ntls_key = "k.pem"\n'), host);
  }
  for (const host of ['127.0.0.1', '127.1.2.3', '::1', 'localhost']) assert.ok(!inTheClear(host), host);
});

test('a TOML instant is accepted like a quoted one', () => {
  const config = load({ file: written('[ingest]\nearliest_time = 2001-02-03T04:05:06Z\n') });
  assert.equal(config.ingest.earliest_time, '2001-02-03T04:05:06Z');
  assert.equal(config.earliestTime, '2001-02-03T04:05:06Z');
  assert.match(refusalOfFile('[ingest]\nearliest_time = 2001-02-03\n'), /expected a time in UTC with Z/);
});

test('a relative folder is relative to the configuration file, else to the working directory', () => {
  assert.equal(load({ file: written('[ingest]\ndrop = "in"\n') }).ingest.drop, path.join(folder, 'in'));
  assert.equal(load({ env: { WIREWATCH_INGEST_DROP: 'in' } }).ingest.drop, path.resolve('in'));
  assert.equal(load({ flags: { drop: 'in' } }).ingest.drop, path.resolve('in'));
  const { photos, ingest } = load({});
  assert.deepEqual([ingest.drop, photos.folder], [path.join(folder, 'drop'), path.join(folder, 'photos')]);
  assert.equal(load({ file: written('[photos]\nfolder = "in"\n') }).photos.folder, path.join(folder, 'in'));
  for (const name of ['', 'log', 'copied', 'photos'])
    assert.match(refusal({ flags: { drop: path.join(folder, name) } }), /--drop: .* has files of Wire/);
  const ofCopy = (to: string) => refusalOfVariable('WIREWATCH_COPY_TO', to);
  assert.match(ofCopy(folder), /WIREWATCH_COPY_TO: .* is part of the data folder/);
  assert.match(ofCopy(path.join(folder, 'drop')), /WIREWATCH_COPY_TO: .* is part of the drop folder/);
});

test('the administration port on a network address needs a certificate: its own, or that of the server', () => {
  const far = { WIREWATCH_ADMIN_PORT: '9', WIREWATCH_ADMIN_HOST: '0.0.0.0' };
  const open = /WIREWATCH_ADMIN_HOST: 0\.0\.0\.0 can be reached.*\[admin\] tls_certificate and tls_key/;
  assert.match(refusal({ env: far }), open);
  const pair = { WIREWATCH_SERVER_TLS_CERTIFICATE: '/c.pem', WIREWATCH_SERVER_TLS_KEY: '/k.pem' };
  assert.equal(load({ env: { ...far, ...pair } }).admin.tls_certificate, '/c.pem');
  const half = { WIREWATCH_ADMIN_TLS_KEY: '/k.pem' };
  assert.match(refusal({ env: half }), /TLS also needs \[admin\] tls_certificate/);
  const copy = { WIREWATCH_COPY_WAIT: 'true', WIREWATCH_COPY_STANDBY: 'true' };
  assert.match(refusal({ env: { ...far, ...half, ...copy } }), /^4 settings are invalid/);
});

test('the shape of an export: every wrong column, value and combination is named', () => {
  const wrong = refusalOfFile(`[exports.newswire]
columns = { subscription = "Kunde", article_image_url = "Bild" }
values = { article_print = { J = "yes" } }
constants = { source_language = 7, source_published_at = 2026-01-01T00:00:00Z }
csv = { delimiter = ";;", encoding = "latin-99", header = ["a", "a"] }
time_format = "DD.MM HH:mm"
time_zone = "Berlin"
file_name = "hits_{YYYYMMDD}.csv"
`);
  for (const part of [
    '[exports.newswire] columns: subscription: newswire files have no such column; did you mean subscription_id?',
    'article_image_url: newswire files have no such column',
    'values: article_print.J: expected true or false, found "yes"',
    'constants: source_language: expected a string',
    'csv: delimiter: expected one character',
    'csv: encoding: expected a label',
    'csv: header: expected the name of each column',
    'time_format: expected empty, or a format',
    'time_zone: expected empty, an IANA time zone',
    'file_name: expected empty, or the name of a file',
  ])
    assert.ok(wrong.includes(part), `${part}\n${wrong}`);
  assert.ok(!wrong.includes('source_published_at'), wrong);
  const section = (text: string) => refusalOfFile(`[exports.newswire]\n${text}\n`);
  assert.match(section('time_format = "DD.MM.YYYY"'), /set time_zone, too/);
  assert.match(section('columns = { source_id = "a" }\nconstants = { source_id = "b" }'), /also in columns/);
  assert.match(section('columns = { source_id = "a" }\ncsv.header = ["b"]'), /csv\.header has no such name/);
  assert.match(refusalOfVariable('WIREWATCH_COPY_TO', 's3://'), /expected a path, or s3:\/\/bucket\/prefix/);
  const named = section('file_name = "imagewire.{YYYYMMDD}T{HHmm}Z.csv"');
  assert.match(named, /imagewire\.20101010T1010Z\.csv is a name/);
  const both =
    'file_name = "a_{YYYYMMDD}_{HHmm}"\n[exports.imagewire]\nfile_name = "a_{YYYY}{MM}{DD}_{HHmm}"';
  assert.match(section(both), /the other export also has a_20101010_1010; names must tell the exports apart/);
  const ofVariable = refusalOfVariable('WIREWATCH_EXPORTS_NEWSWIRE_COLUMNS', 'source_id: a');
  for (const text of [section('columns = { source_id = 7 }'), ofVariable])
    assert.match(text, /expected a table such as/);
});

const WRONG_ENTRIES: readonly (readonly [toml: string, problem: RegExp])[] = [
  ['[[accounts]]\nid = "a"\n', /accounts\[0\]\.name: missing; expected 1 to 200 characters$/],
  ['[[accounts]]\nid = "a b"\n', /accounts\[0\]\.id: expected an account id.*found "a b"/],
  [`${ACCOUNT}${ACCOUNT}`, /accounts\[1\]\.id: acme is already used by accounts\[0\]$/],
  [`${SUBSCRIPTION}content_types = ["video"]\n`, /content_types: expected text, image.*found a list/],
  [`${SUBSCRIPTION}time-zone = "UTC"\n`, /\[0\]\.time-zone: unknown; did you mean time_zone\?$/],
  [KEY.replace(HASH, 'abc'), /keys\[0\]\.hash: expected 64 hexadecimal digits/],
  [KEY.replace(/hash.*\n/, ''), /keys\[0\]\.hash: missing/],
  [`${KEY}secret_file = "x"\n`, /keys\[0\]\.secret_file: give hash or secret_file, not both/],
  [KEY.replace(/id.*\n/, ''), /keys\[0\]\.id: missing/],
  [KEY.replace('[7001]', '[]'), /keys\[0\]\.subscriptions: expected at least one/],
  [KEY.replace(/subscriptions.*\n/, ''), /keys\[0\]\.subscriptions: missing/],
  [`${KEY}expires = 2099-01-01\n`, /keys\[0\]\.expires: expected a time/],
  ['[accounts]\nid = "a"\n', /accounts: expected entries \[\[accounts\]\], found a section$/],
  [ACCOUNT.repeat(1001), /accounts: expected at most 1000 entries, found 1001$/],
  [`[keys]\nprefix = "a"\n${KEY}`, /TOML does not allow \[keys\] and \[\[keys\]\]/],
];

test('errors in an entry are reported by its path, all at once, with what was expected', () => {
  for (const [toml, problem] of WRONG_ENTRIES) assert.match(refusalOfFile(toml), problem);
  assert.match(refusalOfFile('[[accounts]]\n[[subscriptions]]\n[[keys]]\n'), /^9 settings are invalid:\n/);
});

test('a secret in the wrong place of an entry is not repeated', () => {
  const secret = `"ww_live_abcdefghij23_${'a'.repeat(52)}"`;
  const replaced = ['id', 'hash'].map((member) =>
    KEY.replace(new RegExp(`(?<=^${member} = ).*$`, 'm'), secret),
  );
  for (const toml of [...replaced, `${KEY}key = ${secret}\n`])
    assert.ok(!refusalOfFile(toml).includes('aaaaaaa'), toml);
});

test('a secret file that holds another key, a mistyped one or the same one twice is refused', async () => {
  const { id, key } = await generated();
  const read = (toml: string) => readSecretFiles(load({ file: written(toml) }).preseed);
  const refusalOf = (toml: string) => refused('configuration', () => read(toml));
  const file = path.join(folder, 'one.key');
  const entry = `[[keys]]\nsecret_file = "one.key"\n${TERMS}`;
  writeFileSync(file, key, { mode: 0o600 });
  read(`${entry}id = "${id}"\n`);
  const other = new RegExp(`contains key ${id}, but the entry names abcdefghij23`);
  assert.match(refusalOf(`${entry}id = "abcdefghij23"\n`), other);
  assert.match(refusalOf(`${entry}${entry}`), /keys\[1\]\.id: .* is already used by keys\[0\]/);
  writeFileSync(file, `${key.slice(0, -1)}${key.endsWith('a') ? 'b' : 'a'}`);
  const message = refusalOf(entry);
  assert.match(message, /does not contain a complete key/);
  assert.ok(!message.includes(key.slice(-30)), message);
});
