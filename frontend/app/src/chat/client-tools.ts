import type { SluiceChatOptions } from "sluicegate/react";

const PATIENCE_MILLISECONDS = 20_000;

/** Where the browser says it is; refused or unknown, the agent is told so. */
function position(isPrecise: boolean): Promise<GeolocationPosition> {
  return new Promise((resolve, reject) => {
    navigator.geolocation.getCurrentPosition(
      resolve,
      () => reject(new Error("The browser did not tell where it is.")),
      { enableHighAccuracy: isPrecise, timeout: PATIENCE_MILLISECONDS },
    );
  });
}

/** The tools that this page runs for an agent. */
export const CLIENT_TOOLS: NonNullable<SluiceChatOptions["clientTools"]> = {
  async get_location({ precise }: { readonly precise?: boolean }) {
    const { coords } = await position(precise === true);
    return {
      latitude: coords.latitude,
      longitude: coords.longitude,
      accuracyMetres: Math.round(coords.accuracy),
    };
  },
};
