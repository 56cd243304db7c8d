/** Which work serves which request. */
import { inTurns } from '../../history/compact.ts';
import { compactNow, type Removals, serveRemovals } from '../apply/remove-rows.ts';
import type { FileStore } from '../drop/finished-file.ts';
import { reasonOfFile } from '../file-errors.ts';
import type { FileRecord } from '../file-record.ts';
import type { ExportReader } from '../threads/export-reader.ts';
import { replay } from './replay.ts';
import type { HandleRequest } from './requests.ts';
import { expect, gap, reset } from './window-requests.ts';

export interface RequestHandling {
  readonly files: FileStore;
  readonly exports: ExportReader;
  readonly removals: Removals;
  /** Lets more urgent work run between two steps. */
  readonly between: () => Promise<void>;
  /** Called for a file that a request had read. */
  readonly onProcessed: (record: FileRecord) => void;
}

export function handleRequests({
  files,
  exports,
  removals,
  between,
  onProcessed,
}: RequestHandling): HandleRequest {
  return async (request, tell) => {
    switch (request.kind) {
      case 'replay':
        return replay(files, exports, request, { between, tell });
      case 'reset':
        return reset(files, exports, request, onProcessed).catch((error) => ({
          ok: false,
          reason: reasonOfFile(error),
        }));
      case 'expect':
        return expect(files.writer, request);
      case 'gap':
        return gap(files.writer, request, files.now);
      case 'remove':
        return serveRemovals(removals, { between, tell });
      case 'compact':
        return compactNow(files.writer, removals, { between: inTurns(between), tell });
    }
  };
}
