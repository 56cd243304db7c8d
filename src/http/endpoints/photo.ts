/**
 * GET /photos/{internal_id}: the agency's photo, at the address that Wirewatch has signed. A wrong signature and a missing
 * photo have one answer, so that nobody learns which photos exist.
 *
 * The folder has each photo under its number: `<id>.jpg` and so on. Only a regular file counts: links are not followed and
 * pipes not waited for, so nothing outside the folder is read.
 */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { Type } from '@sinclair/typebox';
import { isPhotoSignature, parsePhotoId } from '../../detection/photo-address.ts';
import { ANY_TEXT } from '../../query/value-kinds.ts';
import { isErrorCode, Refused } from '../../refused.ts';
import { header, NUMBERED_ID, text } from '../description.ts';
import { ETAG, IF_NONE_MATCH, NOT_MODIFIED, namesEntityTag } from '../entity-tag.ts';
import type { Answer, Exchange } from '../exchange.ts';
import { lastSegment, type OpenRoute } from '../routes.ts';
import { inOpeningTurn } from '../thread-turns.ts';

export type PhotoSources = Readonly<{ folder: string; key: Uint8Array }>;

/** Image types by the ending of a photo's name. The first that exists counts. */
const TYPES = { jpg: 'jpeg', jpeg: 'jpeg', png: 'png', webp: 'webp', gif: 'gif', tif: 'tiff' };

/** Without O_NONBLOCK, opening a pipe would block a thread of the pool until it has a writer. */
const OPEN_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;

/** The name does not exist, or is a link, a socket or a device, or the folder does not exist. */
const NOT_A_FILE = ['ENOENT', 'ENOTDIR', 'ELOOP', 'EMLINK', 'ENXIO', 'EOPNOTSUPP', 'ENODEV'];

export const CACHE_CONTROL = 'public, max-age=31536000, immutable';

const PHOTO_HEADERS = {
  ...ETAG,
  'Accept-Ranges': header(Type.Literal('bytes'), 'Range requests are supported.'),
  'X-Content-Type-Options': header(Type.Literal('nosniff'), 'Clients must not guess another content type.'),
};
const PHOTO_BODY = {
  cacheControl: CACHE_CONTROL,
  files: [...new Set(Object.values(TYPES))].map((type) => `image/${type}`),
};

export const PHOTO: OpenRoute = {
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
      ...ANY_TEXT,
      required: 'the one in `source.image_url`',
      description: 'Copied from `source.image_url`.',
      example: 'Zm9vYmFyYmF6cXV4MTIzNA',
    },
  },
  requestHeaders: {
    ...IF_NONE_MATCH,
    Range: { description: 'A single byte range.', example: 'bytes=0-1023' },
    'If-Range': {
      description: 'ETag of the photo that the client already has part of.',
      example: '"1f-1879a5b1c2d3e4f5"',
    },
  },
  responses: {
    200: { ...PHOTO_BODY, description: 'The photo.', headers: PHOTO_HEADERS },
    206: {
      ...PHOTO_BODY,
      description: 'The requested part of the photo.',
      headers: {
        ...PHOTO_HEADERS,
        'Content-Range': header(
          text('^bytes \\d+-\\d+/\\d+$'),
          'The part returned, and the size of the photo in bytes.',
        ),
      },
    },
    304: { description: NOT_MODIFIED, cacheControl: CACHE_CONTROL, headers: ETAG },
  },
  problems: ['not_found', 'unavailable'],
  answer: ({ photos }, exchange) => answerPhoto(photos, exchange),
};

export async function answerPhoto(
  { folder, key }: PhotoSources,
  { path, query, request }: Pick<Exchange, 'path' | 'query' | 'request'>,
): Promise<Answer> {
  const id = parsePhotoId(lastSegment(path));
  // Parameters that mailers and search engines append are ignored; a second signature is not.
  const [signature, ...more] = new URLSearchParams(query).getAll('signature');
  const isSigned =
    id !== null && signature !== undefined && more.length === 0 && isPhotoSignature(key, id, signature);
  const photo = isSigned ? await inOpeningTurn(() => openPhoto(folder, id)) : null;
  if (photo === null) throw new Refused('not_found', 'No photo exists at this address.');
  const { etag } = photo;
  const { 'if-none-match': ifNoneMatch, 'if-range': ifRange, range } = request.headers;
  if (namesEntityTag(ifNoneMatch, etag)) {
    await photo.handle.close();
    return { status: 304, body: '', headers: ['ETag', etag] };
  }
  // A part of a replaced photo must not be joined with a part of the previous one.
  return photoAnswer(photo, ifRange === undefined || ifRange === etag ? range : undefined);
}

function photoAnswer({ handle, size, etag, contentType }: Photo, range: string | undefined): Answer {
  const part = parseRange(range, size);
  const { start, bytes } = part ?? { start: 0, bytes: size };
  const headers = ['X-Content-Type-Options', 'nosniff', 'Accept-Ranges', 'bytes', 'ETag', etag];
  if (part !== null) headers.push('Content-Range', `bytes ${start}-${start + bytes - 1}/${size}`);
  return { status: part === null ? 200 : 206, body: { handle, start, bytes }, contentType, headers };
}

const ONE_RANGE = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i;

/** The part of a file that Range asks for (RFC 9110, 14.1.2, 14.2); null: all of it, as for what is malformed. */
function parseRange(header: string | undefined, size: number): { start: number; bytes: number } | null {
  const [, first = '', last = ''] = ONE_RANGE.exec(header ?? '') ?? [];
  if (first === '' && last === '') return null;
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === '' || last === '' ? size : Math.min(size, Number(last) + 1);
  return start < end ? { start, bytes: end - start } : null;
}

type Photo = NonNullable<Awaited<ReturnType<typeof openPhoto>>>;

/** @returns null when there is none; an empty file is still being written and counts as none */
async function openPhoto(folder: string, id: number) {
  for (const [ending, type] of Object.entries(TYPES)) {
    const file = await openFile(join(folder, `${id}.${ending}`));
    if (file !== null) return { ...file, contentType: `image/${type}` };
  }
  return null;
}

async function openFile(path: string) {
  const handle = await open(path, OPEN_FLAGS).catch((error: unknown) => {
    if (isErrorCode(error, ...NOT_A_FILE)) return null;
    throw error;
  });
  if (handle === null) return null;
  let isKept = false;
  try {
    const stat = await handle.stat({ bigint: true });
    isKept = stat.isFile() && stat.size > 0n;
    // Strong: other content has another size or modification time.
    const etag = `"${stat.size.toString(16)}-${stat.mtimeNs.toString(16)}"`;
    return isKept ? { handle, size: Number(stat.size), etag } : null;
  } finally {
    if (!isKept) await handle.close();
  }
}
