/** Which work serves which request. */

import { reasonOfFile } from '../../drop/file-errors.ts';
import { inTurns } from '../../log/compact.ts';
import { compactNow, serveRemovals } from '../apply/remove-rows.ts';
import type { Ingest } from '../files/finished-file.ts';
import { replay } from './replay.ts';
import type { IngestRequest, RequestOutcome } from './requests.ts';
import { dismiss, expect, gap, reset } from './window-requests.ts';

/** @param tell called with the progress, in words */
export async function handleRequest(
  ingest: Ingest,
  request: IngestRequest,
  tell: (progress: string) => void,
): Promise<RequestOutcome> {
  const { writer, between } = ingest;
  switch (request.kind) {
    case 'replay':
      return replay(ingest, request, tell);
    case 'reset':
      return reset(ingest, request).catch((error) => ({ ok: false, reason: reasonOfFile(error) }));
    case 'dismiss':
      return dismiss(ingest, request);
    case 'expect':
      return expect(writer, request);
    case 'gap':
      return gap(ingest, request);
    case 'remove':
      return serveRemovals(ingest, tell);
    case 'compact':
      return compactNow(writer, ingest, { between: inTurns(between), tell });
  }
}
