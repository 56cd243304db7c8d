/** A running appliance with something to find: keys of every kind, tokens, detections, cursors, a photo. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatMs } from '../../src/time.ts';
import { type Appliance, startAppliance } from '../support/appliance.ts';
import { fileName, idOf, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import type { FuzzFacts } from './requests.ts';

const PHOTO_ID = 601;
const ROWS = 40;

/** Limits out of the way: a 429 would hide what is behind it. */
const SETTINGS = {
  WIREWATCH_LIMITS_TOKEN_REQUESTS_PER_MINUTE: '1000000',
  WIREWATCH_LIMITS_UNSEEN_KEY_IDS_PER_MINUTE: '1000000',
};

export async function startTarget(): Promise<{ appliance: Appliance; facts: FuzzFacts }> {
  const appliance = await startAppliance(SETTINGS);
  const { cli } = appliance;
  const makeKey = (...options: string[]): { id: string; key: string } =>
    JSON.parse(cli(['key', 'create', '--account', 'agency', '--name', 'fuzz', ...options, '--json']).stdout);
  const every = makeKey('--scopes', 'detections:read,reports:read', '--subscriptions', '7001,7002');
  const reports = makeKey('--scopes', 'reports:read', '--subscriptions', '7001');
  const revoked = makeKey('--scopes', 'detections:read', '--subscriptions', '7001');
  cli(['key', 'revoke', revoked.id, '--yes']);

  const texts = Array.from({ length: ROWS }, (_, at) =>
    newRow({
      strength_score: (at * 7) % 101,
      article_domain: 'example.com',
      subscription_id: 7001 + (at % 2),
    }),
  );
  const images = Array.from({ length: ROWS }, () => newRow({ source_internal_id: PHOTO_ID }));
  await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson(texts));
  await appliance.dropped(fileName('imagewire', nextWindowMs()), ndjson(images));
  mkdirSync(join(appliance.data, 'photos'), { recursive: true });
  writeFileSync(join(appliance.data, 'photos', `${PHOTO_ID}.jpg`), 'not really a photo');

  const { url } = appliance.serving();
  const read = async (path: string) => JSON.parse(await (await appliance.get(path, every.key)).text());
  const since = new Date(Date.now() - 60_000).toISOString();
  const changes = await read(`/v1/detections/changes?since=${since}&limit=7`);
  const from = String(texts[0]?.first_detected_at);
  const period = await read(`/v1/detections?from=${from}&to=${formatMs(Date.now())}&limit=7`);
  const image = await read(`/v1/detections/${idOf(images[0] ?? {}, 'imagewire')}`);
  const token = await tokenOf(url, every);
  const facts = {
    host: new URL(url).host,
    credentials: [every.key, every.key, token, token, reports.key, revoked.key].map((one) => `Bearer ${one}`),
    client: { id: every.id, secret: every.key.split('_').at(-1) ?? '' },
    ids: [...texts.slice(0, 5).map((row) => idOf(row)), image.id],
    cursors: [changes.next_cursor, period.next_cursor],
    photo: image.source.image_url.slice(url.length),
    nowMs: Date.now(),
  };
  return { appliance, facts };
}

async function tokenOf(url: string, { id, key }: { id: string; key: string }): Promise<string> {
  const body = new URLSearchParams({ grant_type: 'client_credentials', client_id: id, client_secret: key });
  const response = await fetch(`${url}/oauth/token`, { method: 'POST', body });
  const { access_token } = JSON.parse(await response.text());
  return access_token;
}
