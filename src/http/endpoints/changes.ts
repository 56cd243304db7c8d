/** GET /v1/detections/changes: the change stream. */
import { Type } from '@sinclair/typebox';
import type { Credential } from '../../auth/credential-check.ts';
import { monotonicMs } from '../../clock.ts';
import { STREAMS_MAX, WAIT_SECONDS_MAX } from '../../limits/api-limits.ts';
import { formatAsOf } from '../../query/as-of.ts';
import { type ChangesPage, type ChangesQuery, readPageFrom } from '../../query/changes-page.ts';
import { CHANGES_PARAMETERS, type ChangesParameters, parseChanges } from '../../query/changes-parameters.ts';
import { jsonBaseUrl } from '../../query/detection-text.ts';
import { invalid } from '../../query/parameters.ts';
import { selectStreams } from '../../query/streams.ts';
import { Refused } from '../../refused.ts';
import { releaseMemory } from '../../release-memory.ts';
import { SECOND_MS } from '../../time.ts';
import { AS_OF, closed, EXAMPLE_TIME, optional, ref, text } from '../description.ts';
import type { Answer, Exchange } from '../exchange.ts';
import { NEXT_LINK, nextLink, pageBody } from '../next-link.ts';
import type { KeyedRoute } from '../routes.ts';
import type { Service } from '../service.ts';
import { countPage, verifyAgain } from '../verification.ts';
import { preferredWaitSeconds } from '../waiting.ts';
import { IMAGE_EXAMPLE, OF_DETECTIONS, TEXT_EXAMPLE } from './detection.ts';

/** Browsers' EventSource sends this alone. Where JSON comes first, the client gets JSON. */
const EVENTS_ASKED = /^\s*text\/event-stream\s*(?:[;,]|$)/i;
/** nginx, for one, would hold events back until its buffer is full. */
const EVENTS = { contentType: 'text/event-stream', headers: ['X-Accel-Buffering', 'no'] };
const CURSOR_EXAMPLE = 'vEEz9_nMB-9gd7TQcKD5Tw';

export const CHANGES: KeyedRoute = {
  ...OF_DETECTIONS,
  path: '/v1/detections/changes',
  id: 'listChanges',
  summary: 'Read the change stream',
  description:
    'Returns every new or changed detection in arrival order. Start with `since`. Store `next_cursor` together with the rows, and pass it as `cursor` from then on. While `has_more` is true, call again at once. Delivery is at least once: upsert by `id` and keep the higher `version`. With `Accept: text/event-stream`, the pages are server-sent events, as long as the connection lasts: `id` is the cursor, `data` a ChangesPage. (It is no content type of the response here, since generated clients would have to expect a text in place of a page.)',
  query: CHANGES_PARAMETERS,
  requestHeaders: {
    Prefer: {
      description: `How long to wait for the next change where the page would be empty (RFC 7240), in seconds, at most ${WAIT_SECONDS_MAX}.`,
      example: 'wait=30',
    },
    'Last-Event-ID': {
      description:
        'With `Accept: text/event-stream`: the `id` of the last event, from which the stream goes on. It takes the place of `since`. Together with another `cursor` it is 400.',
      example: CURSOR_EXAMPLE,
    },
  },
  responses: {
    200: {
      description: 'A page of the stream. It can be empty.',
      schema: 'ChangesPage',
      headers: {
        ...NEXT_LINK,
        'Preference-Applied': optional(
          text('^wait=\\d+$'),
          'The request has waited, at most this many seconds.',
        ),
      },
      examples: {
        page: {
          data: [withEvent(TEXT_EXAMPLE, 'updated'), withEvent(IMAGE_EXAMPLE, 'created')],
          next_cursor: CURSOR_EXAMPLE,
          has_more: true,
          as_of: EXAMPLE_TIME,
        },
        nothing_new: { data: [], next_cursor: CURSOR_EXAMPLE, has_more: false, as_of: EXAMPLE_TIME },
      },
    },
  },
  schemas: {
    ChangesPage: closed({
      data: Type.Array(ref('Change'), { description: 'In arrival order.' }),
      next_cursor: ref('StreamCursor'),
      has_more: Type.Boolean({
        description: 'True: call again now. False: caught up; call again later with the same cursor.',
      }),
      as_of: AS_OF,
    }),
  },
  async answer(service, exchange, credential) {
    const { request, query: raw, nowMs } = exchange;
    const { accept = '', prefer, 'last-event-id': lastEventId } = request.headers;
    const asEvents = EVENTS_ASKED.test(accept);
    const resumed = asEvents ? lastEventId?.toString() : undefined;
    const asked = parseChanges(raw, nowMs, service.streamCursors.decode, resumed);
    const query = queryOf(service, asked, credential);
    await service.turns.take(credential.key_id);
    service.allowance.require(credential, nowMs);
    const page = readPageFrom(service.detections(), query, service.onEndLost);
    const reading = { service, exchange, asked, keyId: credential.key_id };
    if (asEvents) return { ...countsOf(page), ...EVENTS, body: { events: changeEvents(reading, page) } };
    const seconds = isCaughtUp(page) ? preferredWaitSeconds(prefer) : null;
    return seconds === null ? answerOf(reading, page, nowMs) : answerAfterWait(reading, page, seconds);
  },
};

function withEvent<Rest>({ id, version, ...rest }: Rest & { id: string; version: number }, event: string) {
  return { id, version, event, ...rest };
}

type Reading = Readonly<{ service: Service; exchange: Exchange; asked: ChangesParameters; keyId: string }>;

/** @throws Refused `invalid_request`, for streams too */
function queryOf(service: Service, asked: ChangesParameters, { subscriptions }: Credential): ChangesQuery {
  const { baseUrl, enabledContentTypes, recentDeliveries } = service;
  const { streams, content_types } = selectStreams(subscriptions, asked, enabledContentTypes);
  if (streams.length > STREAMS_MAX)
    throw invalid(
      `subscription_id, content_type: the request covers ${streams.length} streams; at most ${STREAMS_MAX} are allowed. Name fewer subscriptions, or one content type`,
    );
  const { start, limit, fields: projection } = asked;
  const wanted = { start, limit, filters: asked, projection, streams, content_types };
  return { ...wanted, baseUrl: jsonBaseUrl(baseUrl), recentDeliveries };
}

/** An empty page at the head: the client would poll again with its cursor. */
const isCaughtUp = ({ rows, has_more }: ChangesPage) => rows === 0 && !has_more;

/** Reads the page after another, as a request of its own would: the credential is verified again before. */
async function readNext(reading: Reading, { position, epoch }: ChangesPage): Promise<ChangesPage> {
  const { service, exchange, asked, keyId } = reading;
  await service.turns.take(keyId);
  const start = { kind: 'after', position, epoch } as const;
  const credential = verifyAgain(service, exchange, OF_DETECTIONS.scope);
  const query = queryOf(service, { ...asked, start }, credential);
  return readPageFrom(service.detections(), query, service.onEndLost);
}

/** Waits until the page has rows, or the time is over. A change that filters drop only moves the cursor. */
async function answerAfterWait(reading: Reading, first: ChangesPage, seconds: number): Promise<Answer> {
  const { service, exchange, keyId } = reading;
  const { socket } = exchange.request;
  const begun = performance.now();
  const idleMs = socket.timeout;
  // The idle timeout must not end the wait.
  socket.setTimeout(0);
  let page = first;
  try {
    using wait = service.waiting.begin(keyId, seconds * SECOND_MS, socket);
    while (isCaughtUp(page) && (await wait.forChange())) page = await readNext(reading, page);
  } finally {
    // After an error, this connection is still used, also for the next requests.
    socket.setTimeout(idleMs ?? 0);
  }
  const { headers, ...answer } = answerOf(reading, page, service.now());
  headers.push('Preference-Applied', `wait=${seconds}`);
  return { ...answer, headers, waited_ms: performance.now() - begun };
}

/**
 * Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html), each with a page: the first one,
 * then those that a client would get with `Prefer: wait`. Each counts as one request. A refusal ends them, and the
 * client's next request is told the reason.
 */
async function* changeEvents(reading: Reading, first: ChangesPage): AsyncGenerator<Buffer | string> {
  const { service, exchange, keyId } = reading;
  using wait = service.waiting.begin(keyId, null, exchange.request.socket);
  let page = first;
  yield eventOf(reading, page, exchange.nowMs);
  let [sent, sentMs] = [page.position, monotonicMs()];
  // What changed while the event was sent wakes nobody: there is no wait before the next page.
  let restMs = 0;
  try {
    while (await wait.forChange(restMs)) {
      page = await readNext(reading, page);
      restMs = sentMs + service.times.commentMs - monotonicMs();
      if (isCaughtUp(page) && restMs > 0) continue;
      if (isCaughtUp(page) && page.position === sent) yield ':\n\n';
      else {
        countPage(service, exchange, countsOf(page));
        yield eventOf(reading, page, service.now());
      }
      [sent, sentMs, restMs] = [page.position, monotonicMs(), 0];
    }
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
  }
}

function eventOf({ service }: Reading, page: ChangesPage, nowMs: number): Buffer {
  const cursor = service.streamCursors.encode(page);
  const body = bodyOf(page, cursor, nowMs);
  const pieces = typeof body === 'string' ? [Buffer.from(body)] : body;
  const event = Buffer.concat([Buffer.from(`id: ${cursor}\ndata: `), ...pieces, Buffer.from('\n\n')]);
  for (const piece of pieces) releaseMemory(piece);
  return event;
}

function answerOf({ service, exchange }: Reading, page: ChangesPage, nowMs: number) {
  const cursor = service.streamCursors.encode(page);
  const headers = page.has_more ? nextLink(service.baseUrl, CHANGES.path, exchange.query, cursor) : [];
  return { ...countsOf(page), body: bodyOf(page, cursor, nowMs), headers };
}

const countsOf = ({ rows, position }: ChangesPage) => ({ status: 200, rows, position });

const bodyOf = ({ data, has_more, as_of_ms }: ChangesPage, next_cursor: string, nowMs: number) =>
  pageBody(data, { next_cursor, has_more, as_of: formatAsOf(as_of_ms, nowMs) });
