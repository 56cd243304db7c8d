/** An invented example of every body; the tests check each against its schema. */
import { schemaFields } from '../detection/schema.ts';
import { EXAMPLE_TIME } from './vocabulary.ts';

export const EXAMPLE_REQUEST_ID = '5f3a9c1e-7b2d-4e8f-9a60-1c2d3e4f5a6b';

const TEXT = {
  id: 't.7001.123.456',
  version: 2,
  content_type: 'text',
  match_type: 'sentence_fingerprint',
  subscription_id: 7001,
  first_detected_at: '2026-11-21T09:58:12Z',
  first_detected_estimated: false,
  last_scored_at: '2026-11-21T10:04:30Z',
  exported_at: EXAMPLE_TIME,
  source: {
    id: 'urn:newsml:agency.example:20261121:story-1',
    internal_id: 123,
    published_at: '2026-11-21T09:12:00Z',
    language: 'en',
    syndicated: false,
    sentences: 14,
  },
  strength: { score: 78.5, band: 'high', matched_sentences: 11, article_sentences: 20 },
  article: {
    id: 456,
    url: 'https://example.com/2026/11/21/harbour-reopens',
    domain: 'example.com',
    published_at: null,
    headline: 'Harbour reopens after storm',
    publisher: { id: 5, name: 'Example Daily' },
    print: false,
  },
  customer: null,
  classification: null,
};

const IMAGE = {
  id: 'i.7001.124.457',
  version: 1,
  content_type: 'image',
  match_type: 'image_fingerprint',
  subscription_id: 7001,
  first_detected_at: '2026-11-21T09:59:00Z',
  first_detected_estimated: false,
  last_scored_at: '2026-11-21T09:59:00Z',
  exported_at: EXAMPLE_TIME,
  source: {
    id: '0c7b7b4e-5a3e-4b7c-9a43-2f5a3c1d9e10',
    internal_id: 124,
    published_at: '2026-11-21T08:40:00Z',
    image_url: 'https://api.example/photos/124?signature=Zm9vYmFyYmF6cXV4MTIzNA',
    origin_url: null,
  },
  strength: { score: 64, band: 'high' },
  article: {
    id: 457,
    url: 'https://example.com/2026/11/21/harbour-photos',
    domain: 'example.com',
    published_at: null,
    headline: null,
    publisher: null,
    image_url: 'https://example.com/images/harbour.jpg',
  },
  customer: null,
  classification: null,
};

export const DETECTION_EXAMPLES = {
  text: TEXT,
  image: IMAGE,
  fields: { id: TEXT.id, version: TEXT.version, strength: { band: TEXT.strength.band } },
};

export const CHANGES_EXAMPLES = {
  page: {
    data: [withEvent(TEXT, 'updated'), withEvent(IMAGE, 'created')],
    next_cursor: 'vEEz9_nMB-9gd7TQcKD5Tw',
    has_more: true,
    as_of: EXAMPLE_TIME,
  },
  nothing_new: {
    data: [],
    next_cursor: 'vEEz9_nMB-9gd7TQcKD5Tw',
    has_more: false,
    as_of: EXAMPLE_TIME,
  },
};

export const PERIOD_EXAMPLES = {
  page: {
    data: [TEXT, IMAGE],
    next_cursor: null,
    has_more: false,
    from: '2026-10-31T23:00:00Z',
    to: EXAMPLE_TIME,
    time_zone: 'Europe/Berlin',
    as_of: EXAMPLE_TIME,
  },
};

export const ME_EXAMPLES = {
  me: {
    account: { id: 'acme', name: 'Acme News' },
    key: { id: 'abcdefgh2345', name: 'Dashboard', scopes: ['detections:read'], expires_at: null },
    subscriptions: [
      {
        id: 7001,
        name: 'Newsroom',
        content_types: ['text', 'image'],
        time_zone: 'Europe/Berlin',
        data_starts: { text: '2026-01-01T00:00:00Z', image: null },
        customer_lists: false,
        classification_since: null,
      },
    ],
    data_gaps: { text: [{ window_start: '2026-11-18T14:20:00Z', status: 'missing' }], image: [] },
    limits: {
      requests_per_minute: 120,
      daily_rows: 1_000_000,
      daily_file_rows: 0,
      exports_per_day: 0,
      throttled: null,
    },
    schema_version: 'v1',
  },
};

export const SCHEMA_EXAMPLES = { schema: { schema_version: 'v1', fields: schemaFields().slice(0, 2) } };

export const TOKEN_EXAMPLES = {
  token: {
    access_token: 'ww_token_example',
    token_type: 'Bearer',
    expires_in: 3600,
    scope: 'detections:read',
  },
};

export const HEALTH_EXAMPLES = {
  ok: {
    status: 'ok',
    exports: { newswire: { newest_done: EXAMPLE_TIME }, imagewire: { newest_done: EXAMPLE_TIME } },
    alerts: { open: 0, page_worthy: 0, paused: 0 },
  },
};

export const DEGRADED_EXAMPLES = {
  degraded: {
    status: 'degraded',
    exports: { newswire: { newest_done: '2026-11-21T09:00:00Z' }, imagewire: { newest_done: null } },
    alerts: { open: 2, page_worthy: 1, paused: 0 },
  },
};

/** With `event` after `version`, as on the stream. */
function withEvent(
  { id, version, ...rest }: typeof TEXT | typeof IMAGE,
  event: 'created' | 'updated',
): unknown {
  return { id, version, event, ...rest };
}
