/** Starts an appliance with keys of every kind, tokens, detections, cursors and a photo. */
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatMs } from '../../../src/time.ts';
import { type Appliance, startAppliance } from '../../support/appliance.ts';
import { fileName, idOf, ndjson, newRow, newRows, nextWindowMs } from '../../support/export-files.ts';
import { freePort } from '../../support/free-port.ts';
import { preloaded } from '../../support/preload.ts';
import { granted, inBody, postToken } from '../../support/token-client.ts';
import { Secrets } from './secrets.ts';

const PHOTO_ID = 601;
const LARGE_PHOTO_ID = 602;
/** More than the system buffers for a client that does not read. */
const LARGE_PHOTO_BYTES = 16 * 1024 * 1024;
const ROWS = 40;
/** Twice the timeout of a minute, since Node restarts it during a write, plus some time to notice. */
const STALLED_TIMEOUT_MS = 150_000;
/** Idle timeouts are divided by this. */
const TIMEOUT_DIVISOR = 3;

/** No limits: a 429 would hide later checks, and every client has the same address. */
const SETTINGS = {
  WIREWATCH_LIMITS_REQUESTS_PER_MINUTE: '1000000000',
  WIREWATCH_LIMITS_TOKEN_REQUESTS_PER_MINUTE: '1000000000',
  WIREWATCH_LIMITS_UNSEEN_KEY_IDS_PER_MINUTE: '1000000000',
  WIREWATCH_SERVER_MAX_CONNECTIONS: '1000000',
  WIREWATCH_SERVER_MAX_CONNECTIONS_PER_ADDRESS: '1000000',
  WIREWATCH_LOG_LEVEL: 'trace',
};

export type Target = Awaited<ReturnType<typeof startTarget>>;

/**
 * Preloaded into the program: shortens the timeouts of idle and stalled connections. Other timeouts stay, so that a
 * good client on a busy machine is not disconnected as too slow.
 */
const SHORT_TIMEOUTS = `
  import http from 'node:http';
  const { createServer } = http;
  http.createServer = (first, ...more) => {
    // The control socket has no timeouts.
    if (typeof first === 'function') return createServer(first, ...more);
    const { keepAliveTimeout = 0, ...options } = first;
    const server = createServer({ keepAliveTimeout: keepAliveTimeout / ${TIMEOUT_DIVISOR}, ...options }, ...more);
    const { setTimeout } = server;
    server.setTimeout = (ms) => setTimeout.call(server, ms / ${TIMEOUT_DIVISOR});
    return server;
  };
`;

/** @param hasShortTimeouts see {@link SHORT_TIMEOUTS} */
export async function startTarget(hasShortTimeouts: boolean) {
  const secrets = new Secrets();
  const adminPort = await freePort();
  const password = `hunter2${randomBytes(16).toString('hex')}`;
  secrets.plant('a password in a setting', password);
  const appliance = await startAppliance({
    ...SETTINGS,
    ...(hasShortTimeouts ? preloaded(SHORT_TIMEOUTS) : {}),
    WIREWATCH_ADMIN_PORT: `${adminPort}`,
    // The command fails each time, which must be logged without the password.
    WIREWATCH_ALERTS_COMMAND: `/bin/false,--user,agency:${password},--header,Authorization: Bearer ${password}`,
  });
  const { cli } = appliance;
  const makeKey = (...options: string[]): { id: string; key: string } =>
    JSON.parse(cli(['key', 'create', '--account', 'agency', '--name', 'fuzz', ...options, '--json']).stdout);
  const every = makeKey('--scopes', 'detections:read,reports:read', '--subscriptions', '7001,7002');
  const reports = makeKey('--scopes', 'reports:read', '--subscriptions', '7001');
  const revoked = makeKey('--scopes', 'detections:read', '--subscriptions', '7001');
  cli(['key', 'revoke', revoked.id, '--yes']);

  const { texts, images, large } = await fill(appliance);
  const { url } = appliance.serving();
  const read = async (path: string) => JSON.parse(await (await appliance.get(path, every.key)).text());
  const since = new Date(Date.now() - 60_000).toISOString();
  const changes = await read(`/v1/detections/changes?since=${since}&limit=7`);
  const from = String(texts[0]?.first_detected_at);
  const period = await read(`/v1/detections?from=${from}&to=${formatMs(Date.now())}&limit=7`);
  const image = await read(`/v1/detections/${idOf(images[0] ?? {}, 'imagewire')}`);
  const largeImage = await read(`/v1/detections/${idOf(large, 'imagewire')}`);
  const client = inBody({ id: every.id, secret: every.key });
  const { access_token: token } = await granted(await postToken({ url }, client));
  const foreign = `sk${randomBytes(32).toString('hex')}`;
  for (const { key } of [every, reports, revoked, appliance])
    secrets.plant('the secret of a key', endOf(key));
  secrets.plant('a token', endOf(token));
  secrets.plant('a bearer header of another service', foreign);
  const basic = btoa(`${every.id}:${every.key}`);
  secrets.plant('a key within a Basic header', basic.slice(-40));
  const ownSecret = readFileSync(join(appliance.data, 'secret'));
  for (const form of ['hex', 'base64', 'base64url', 'latin1'] as const)
    secrets.plant(`the secret of the installation as ${form}`, ownSecret.toString(form));
  const facts = {
    host: new URL(url).host,
    /** Well-formed values of Authorization. */
    credentials: [every.key, every.key, token, token, reports.key, revoked.key].map((one) => `Bearer ${one}`),
    /** Secrets that are not credentials of this API. */
    misplaced: [foreign, ownSecret.toString('hex'), `Bearer ${foreign}`, basic],
    client: { id: every.id, secret: endOf(every.key) },
    ids: [...texts.slice(0, 5).map((row) => idOf(row)), image.id],
    cursors: [changes.next_cursor, period.next_cursor],
    photo: image.source.image_url.slice(url.length),
    nowMs: Date.now(),
  };
  return {
    appliance,
    /** All of the installation. */
    secrets,
    facts,
    admin: `http://127.0.0.1:${adminPort}`,
    /** It reads everything. */
    key: every.key,
    /** The signed path of a photo that takes many writes. */
    largePhoto: largeImage.source.image_url.slice(url.length),
    /** The longest time after which the program disconnects a client that never reads. */
    stalledTimeoutMs: STALLED_TIMEOUT_MS / (hasShortTimeouts ? TIMEOUT_DIVISOR : 1),
  };
}

/** Detections and photos to read. */
async function fill(appliance: Appliance) {
  const texts = Array.from({ length: ROWS }, (_, at) => {
    const members = { strength_score: (at * 7) % 101, subscription_id: 7001 + (at % 2) };
    return newRow({ ...members, article_domain: 'example.com' });
  });
  const images = newRows(ROWS, { source_internal_id: PHOTO_ID });
  const large = newRow({ source_internal_id: LARGE_PHOTO_ID });
  await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson(texts));
  await appliance.dropped(fileName('imagewire', nextWindowMs()), ndjson([...images, large]));
  const photos = join(appliance.data, 'photos');
  mkdirSync(photos, { recursive: true });
  writeFileSync(join(photos, `${PHOTO_ID}.jpg`), 'not really a photo');
  writeFileSync(join(photos, `${LARGE_PHOTO_ID}.jpg`), Buffer.alloc(LARGE_PHOTO_BYTES, 'x'));
  return { texts, images, large };
}

/** The secret part of a key or token: the last one; the other parts are public. */
const endOf = (keyOrToken: string): string => keyOrToken.slice(keyOrToken.split('_', 3).join('_').length + 1);
