import capture from "../../../client/src/audio/capture-worklet.ts?worker&url";
import playback from "../../../client/src/audio/playback-worklet.ts?worker&url";

/** Where the build has put the worklets of microphone and loudspeaker: files of this host. */
export const WORKLETS = { capture, playback };
