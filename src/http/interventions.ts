/**
 * What a lab does to the requests of clients and to their answers. An appliance does nothing of it: its `Judge` has
 * none.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Credential } from '../auth/authorize.ts';
import type { Exchange } from './reply.ts';
import type { Answer, Route } from './routes.ts';

export interface Interventions {
  /** Answers what is asked of the lab itself. @returns false, with nothing done, for a request to the API */
  control(request: IncomingMessage, response: ServerResponse): boolean;
  /**
   * Begins with every request to the API; it may change the request's target.
   *
   * @param route null where there is none
   * @param baseUrl as of problemAnswer
   */
  begin(request: IncomingMessage, exchange: Exchange, route: Route | null, baseUrl: string): Intervention;
  /** What the console shows of it: a LabState. */
  readonly shown: () => object;
}

/** What is done to one request, in the order of its steps. */
export interface Intervention {
  /** Nobody else answers it: the connection was cut, or a proxy has answered. */
  readonly isTaken: boolean;
  /** Before the credential is checked. @throws Refused in place of that */
  atCredential(): void;
  /** Before the endpoint has its turn. @param credential null at an endpoint for anybody; @throws in place of the endpoint */
  atEndpoint(credential: Credential | null): void;
  /** @returns what the client gets in place of the endpoint's answer, not yet compressed */
  answered(answer: Answer): Answer;
  /** Sends any answer, that of a problem too; never rejects. @param closing as of sendAnswer */
  send(answer: Answer, closing: boolean): Promise<void>;
}
