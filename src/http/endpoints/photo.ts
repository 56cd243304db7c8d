/**
 * GET /photos/{internal_id}: the agency's photo, at the address that Wirewatch has signed. The signature never expires,
 * and no other credential is needed. A wrong signature and a missing photo have one answer, so that nobody learns which
 * photos exist.
 *
 * The folder has each photo under its number: `<id>.jpg` and so on. The name is made of digits, and only a regular file
 * counts: links are not followed and pipes not waited for, so nothing outside the folder is read.
 */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import { Type } from '@sinclair/typebox';
import { isPhotoSignature, parsePhotoId } from '../../detection/photo-address.ts';
import { single } from '../../query/parameters.ts';
import { text as anyText } from '../../query/value-kinds.ts';
import { isErrorCode, Refused } from '../../refused.ts';
import { SECOND_MS } from '../../time.ts';
import { header, NUMBERED_ID, type OpenEndpoint, text } from '../description.ts';
import { ETAG, IF_NONE_MATCH, NOT_MODIFIED, namesEntityTag } from '../entity-tag.ts';
import { type FileState, parseRange, readState } from '../file-body.ts';
import type { Answer, Call, OpenRoute } from '../routes.ts';

export interface PhotoSources {
  /** Absolute; need not exist. */
  readonly folder: string;
  readonly key: Uint8Array;
}

/** The first that exists counts. */
const CONTENT_TYPES: ReadonlyMap<string, string> = new Map([
  ['.jpg', 'image/jpeg'],
  ['.jpeg', 'image/jpeg'],
  ['.png', 'image/png'],
  ['.webp', 'image/webp'],
  ['.gif', 'image/gif'],
  ['.tif', 'image/tiff'],
]);
const PHOTO_TYPES = [...new Set(CONTENT_TYPES.values())];

/** Without O_NONBLOCK, opening a pipe would block a thread of the pool until it has a writer. */
const OPEN_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;

/** The name does not exist, or is a link, a socket or a device, or the folder does not exist. */
const NOT_A_FILE = ['ENOENT', 'ENOTDIR', 'ELOOP', 'EMLINK', 'ENXIO', 'EOPNOTSUPP', 'ENODEV'];

/** The one form in which dates are sent (RFC 9110, 5.6.7). */
const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;
const CACHE_CONTROL = 'public, max-age=31536000, immutable';

const VALIDATORS = { ...ETAG, 'Last-Modified': header(text(' GMT$'), 'When the file was last changed.') };
const PHOTO_HEADERS = {
  ...VALIDATORS,
  'Accept-Ranges': header(Type.Literal('bytes'), 'Range requests are supported.'),
  'X-Content-Type-Options': header(Type.Literal('nosniff'), 'Clients must not guess another content type.'),
};

export const PHOTO: OpenEndpoint = {
  path: '/photos/{internal_id}',
  method: 'GET',
  id: 'getPhoto',
  tag: 'Detections',
  summary: 'Retrieve a photo',
  description:
    'Returns the photo of the agency, at the signed address that a detection carries in `source.image_url`. The signature never expires.',
  access: 'open',
  segment: { description: '`source.internal_id` of the photo.', schema: NUMBERED_ID, example: 123 },
  query: {
    signature: {
      ...single(anyText()),
      required: 'the one in `source.image_url`',
      description: 'Copied from `source.image_url`.',
      example: 'Zm9vYmFyYmF6cXV4MTIzNA',
    },
  },
  requestHeaders: {
    ...IF_NONE_MATCH,
    'If-Modified-Since': {
      description: 'A Last-Modified; ignored beside If-None-Match.',
      example: 'Sat, 21 Nov 2026 10:10:00 GMT',
    },
    Range: { description: 'A single byte range.', example: 'bytes=0-1023' },
    'If-Range': {
      description: 'ETag of the photo that the client already has part of.',
      example: '"1f-1879a5b1c2d3e4f5"',
    },
  },
  responses: {
    200: {
      description: 'The photo.',
      cacheControl: CACHE_CONTROL,
      files: PHOTO_TYPES,
      headers: PHOTO_HEADERS,
    },
    206: {
      description: 'The requested part of the photo.',
      cacheControl: CACHE_CONTROL,
      files: PHOTO_TYPES,
      headers: {
        ...PHOTO_HEADERS,
        'Content-Range': header(
          text('^bytes \\d+-\\d+/\\d+$'),
          'The part returned, and the size of the photo in bytes.',
        ),
      },
    },
    304: { description: NOT_MODIFIED, cacheControl: CACHE_CONTROL, headers: VALIDATORS },
  },
  problems: ['not_found'],
};

export function photoRoute(sources: PhotoSources): OpenRoute {
  return { ...PHOTO, answer: (call) => answerPhoto(sources, call) };
}

async function answerPhoto({ folder, key }: PhotoSources, call: Call): Promise<Answer> {
  const id = parsePhotoId(call.segment);
  // Parameters that mailers and search engines append are ignored; a second signature is not.
  const [signature, ...more] = new URLSearchParams(call.query).getAll('signature');
  if (id === null || signature === undefined || more.length > 0) throw notFound();
  if (!isPhotoSignature(key, id, signature)) throw notFound();
  const photo = await openPhoto(folder, id);
  if (photo === null) throw notFound();
  const etag = etagOf(photo.state);
  const { 'if-range': ifRange, range } = call.request.headers;
  if (isKnown(call.request.headers, etag, photo.state)) {
    await photo.handle.close();
    return { status: 304, body: '', cacheControl: CACHE_CONTROL, headers: validators(photo.state) };
  }
  // A part of a replaced photo must not be joined with a part of the previous one.
  const isSame = ifRange === undefined || ifRange === etag;
  return photoAnswer(photo, isSame ? range : undefined);
}

function photoAnswer({ handle, state, contentType }: Photo, range: string | undefined): Answer {
  const { size } = state;
  const part = parseRange(range, size);
  const { start, bytes } = part ?? { start: 0, bytes: size };
  const headers = ['X-Content-Type-Options', 'nosniff', 'Accept-Ranges', 'bytes', ...validators(state)];
  if (part !== null) headers.push('Content-Range', `bytes ${start}-${start + bytes - 1}/${size}`);
  return {
    status: part === null ? 200 : 206,
    body: { handle, state, start, bytes },
    contentType,
    cacheControl: CACHE_CONTROL,
    headers,
  };
}

/** Whether the client has the current photo. If-None-Match, where it is sent, decides alone (RFC 9110, 13.2.2). */
function isKnown(headers: IncomingHttpHeaders, etag: string, state: FileState): boolean {
  const { 'if-none-match': ifNoneMatch, 'if-modified-since': ifModifiedSince } = headers;
  if (ifNoneMatch !== undefined) return namesEntityTag(ifNoneMatch, etag);
  // Any other date format is ignored (RFC 9110, 13.1.3).
  if (ifModifiedSince === undefined || !HTTP_DATE.test(ifModifiedSince)) return false;
  return modifiedSeconds(state) <= Date.parse(ifModifiedSince) / SECOND_MS;
}

function validators(state: FileState): string[] {
  const modified = new Date(modifiedSeconds(state) * SECOND_MS).toUTCString();
  return ['ETag', etagOf(state), 'Last-Modified', modified];
}

function modifiedSeconds({ modifiedNs }: FileState): number {
  return Number(modifiedNs / 1_000_000_000n);
}

/** Strong: other content has another size or modification time. */
function etagOf({ size, modifiedNs }: FileState): string {
  return `"${size.toString(16)}-${modifiedNs.toString(16)}"`;
}

function notFound(): Refused {
  return new Refused('not_found', 'No photo exists at this address.');
}

interface Photo {
  /** Open; the caller closes it. */
  readonly handle: FileHandle;
  readonly state: FileState;
  readonly contentType: string;
}

/** @returns null when there is none; an empty file is still being written and counts as none */
async function openPhoto(folder: string, id: number): Promise<Photo | null> {
  for (const [ending, contentType] of CONTENT_TYPES) {
    const file = await openFile(join(folder, `${id}${ending}`));
    if (file !== null) return { ...file, contentType };
  }
  return null;
}

async function openFile(path: string): Promise<Pick<Photo, 'handle' | 'state'> | null> {
  const handle = await open(path, OPEN_FLAGS).catch((error: unknown) => {
    if (isErrorCode(error, ...NOT_A_FILE)) return null;
    throw error;
  });
  if (handle === null) return null;
  let isKept = false;
  try {
    const state = await readState(handle);
    isKept = state.isFile && state.size > 0;
    return isKept ? { handle, state } : null;
  } finally {
    if (!isKept) await handle.close();
  }
}
