/** GET /v1/detections/{id}: one detection, its latest version. */
import type { Credential } from '../../auth/authorize.ts';
import type { ContentType } from '../../detection/content-type.ts';
import { isDetectionId } from '../../detection/id.ts';
import { jsonBaseUrl } from '../../query/base-url.ts';
import { VIEW_PARAMETERS } from '../../query/common-parameters.ts';
import { readOneDetection } from '../../query/one-detection.ts';
import { invalid, readParameters } from '../../query/parameters.ts';
import { EVERY_STREAM, selectStreams } from '../../query/streams.ts';
import { Refused } from '../../refused.ts';
import type { Database } from '../../store/database.ts';
import { type Answer, detectionsRoute, type KeyedCall, type KeyedRoute } from '../routes.ts';

/** What the endpoints of detections read. */
export interface DetectionSources {
  readonly detections: () => Database;
  readonly enabledContentTypes: ReadonlySet<ContentType>;
  readonly baseUrl: () => string;
}

export function detectionRoute(sources: DetectionSources): KeyedRoute {
  return detectionsRoute('/v1/detections/{id}', (call, credential) =>
    answerDetection(sources, call, credential),
  );
}

function answerDetection(sources: DetectionSources, call: KeyedCall, { subscriptions }: Credential): Answer {
  const id = readId(call.segment);
  const { fields: projection } = readParameters(call.query, VIEW_PARAMETERS);
  const { streams } = selectStreams(subscriptions, EVERY_STREAM, sources.enabledContentTypes);
  call.requireAllowance();
  const body = readOneDetection(sources.detections(), {
    id,
    streams,
    projection,
    baseUrl: jsonBaseUrl(sources.baseUrl()),
  });
  if (body === null) throw noDetection();
  return { status: 200, rows: 1, body };
}

export function noDetection(): Refused {
  return new Refused('not_found', 'No detection with this id is available to this key.');
}

/** @throws Refused `invalid_request` */
function readId(segment: string): string {
  let id = segment;
  try {
    id = decodeURIComponent(segment);
  } catch {
    throw invalid('id: must be valid percent-encoded UTF-8');
  }
  if (!isDetectionId(id)) throw invalid('id: must be a detection id such as t.7001.123.456');
  return id;
}
