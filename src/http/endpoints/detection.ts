/** GET /v1/detections/{id}: one detection, its latest version. */
import { Type } from '@sinclair/typebox';
import { DETECTION_ID_PATTERN, isDetectionId } from '../../detection/id.ts';
import { jsonBaseUrl, readOneDetection } from '../../query/detection-text.ts';
import { VIEW_PARAMETERS } from '../../query/filters.ts';
import { decode, invalid, readParameters } from '../../query/parameters.ts';
import { EVERY_STREAM, selectStreams } from '../../query/streams.ts';
import { Refused } from '../../refused.ts';
import { EXAMPLE_TIME } from '../description.ts';
import { type KeyedRoute, lastSegment } from '../routes.ts';

export const OF_DETECTIONS = {
  method: 'GET',
  tag: 'Detections',
  access: 'key',
  scope: 'detections:read',
} as const;

export const TEXT_EXAMPLE = {
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

export const IMAGE_EXAMPLE = {
  ...TEXT_EXAMPLE,
  id: 'i.7001.124.457',
  version: 1,
  content_type: 'image',
  match_type: 'image_fingerprint',
  first_detected_at: '2026-11-21T09:59:00Z',
  last_scored_at: '2026-11-21T09:59:00Z',
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
};

export const DETECTION: KeyedRoute = {
  ...OF_DETECTIONS,
  path: '/v1/detections/{id}',
  id: 'getDetection',
  summary: 'Retrieve a detection',
  description:
    'Returns the latest version. A detection that the key cannot read returns 404, as if it did not exist.',
  segment: {
    description: 'Id of the detection.',
    schema: Type.String({ pattern: DETECTION_ID_PATTERN }),
    example: TEXT_EXAMPLE.id,
  },
  query: VIEW_PARAMETERS,
  responses: {
    200: {
      description: 'The detection.',
      schema: 'Detection',
      examples: { text: TEXT_EXAMPLE, image: IMAGE_EXAMPLE },
    },
  },
  problems: ['not_found'],
  answer({ detections, enabledContentTypes, baseUrl, allowance }, { path, query: asked, nowMs }, credential) {
    const id = decode(lastSegment(path), 'id');
    if (!isDetectionId(id)) throw invalid('id: must be a detection id such as t.7001.123.456');
    const { fields: projection } = readParameters(asked, VIEW_PARAMETERS);
    const { streams } = selectStreams(credential.subscriptions, EVERY_STREAM, enabledContentTypes);
    allowance.require(credential, nowMs);
    const body = readOneDetection(detections(), id, { streams, projection, baseUrl: jsonBaseUrl(baseUrl) });
    if (body === null) throw new Refused('not_found', 'No detection with this id is available to this key.');
    return { status: 200, rows: 1, body };
  },
};
