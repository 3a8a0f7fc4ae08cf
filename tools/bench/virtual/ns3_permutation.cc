// The workload of workload.py in ns-3: reads nodes, links, routes and flows from standard input, so that both simulators
// carry the same packets over the same links, and prints hops, packets received, and seconds of the processor.
//
//   nodes HOSTS SWITCHES    numbered 0 .. HOSTS - 1 and on
//   link A B                interfaces are numbered per node in the order of the links, from 1 on
//   route SWITCH HOST INTERFACE
//   flow FROM TO
//   go RATE_BPS DELAY_US PAYLOAD_BYTES FLOW_BPS NANOSECONDS GLOBAL     GLOBAL 1: ns-3 finds the routes by itself
#include <cstdint>
#include <ctime>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;

namespace {

constexpr uint16_t kDiscardPort = 9;

struct Edge { uint32_t a, b; };
struct Route { uint32_t at, to, interface; };
struct Description {
    uint32_t hosts = 0, switches = 0;
    std::vector<Edge> links, flows;
    std::vector<Route> routes;
    uint64_t rate_bps = 0, delay_us = 0, payload_bytes = 0, flow_bps = 0, nanoseconds = 0;
    bool global_routing = false;
};

uint64_t hops = 0;

void CountHop(Ptr<const Packet>) { hops++; }

Description Read(std::istream &input) {
    Description description;
    for (std::string word; input >> word;) {
        if (word == "nodes") {
            input >> description.hosts >> description.switches;
        } else if (word == "link") {
            Edge edge;
            input >> edge.a >> edge.b;
            description.links.push_back(edge);
        } else if (word == "route") {
            Route route;
            input >> route.at >> route.to >> route.interface;
            description.routes.push_back(route);
        } else if (word == "flow") {
            Edge flow;
            input >> flow.a >> flow.b;
            description.flows.push_back(flow);
        } else if (word == "go") {
            input >> description.rate_bps >> description.delay_us >> description.payload_bytes >>
                description.flow_bps >> description.nanoseconds >> description.global_routing;
        }
    }
    return description;
}

// The address of each host, by number.
std::vector<Ipv4Address> Connect(const Description &description, const NodeContainer &nodes) {
    PointToPointHelper cable;
    cable.SetDeviceAttribute("DataRate", DataRateValue(DataRate(description.rate_bps)));
    cable.SetChannelAttribute("Delay", TimeValue(MicroSeconds(description.delay_us)));
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    std::vector<Ipv4Address> hosts(description.hosts);
    for (const Edge &link : description.links) {
        NetDeviceContainer ends = cable.Install(nodes.Get(link.a), nodes.Get(link.b));
        Ipv4InterfaceContainer interfaces = addresses.Assign(ends);
        addresses.NewNetwork();
        for (uint32_t end = 0; end < 2; end++) {
            ends.Get(end)->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&CountHop));
            uint32_t node = end ? link.b : link.a;
            if (node < description.hosts)
                hosts[node] = interfaces.GetAddress(end);
        }
    }
    return hosts;
}

void AddRoutes(const Description &description, const NodeContainer &nodes, const std::vector<Ipv4Address> &hosts) {
    Ipv4StaticRoutingHelper helper;
    for (uint32_t host = 0; host < description.hosts; host++)
        helper.GetStaticRouting(nodes.Get(host)->GetObject<Ipv4>())->SetDefaultRoute(Ipv4Address("0.0.0.0"), 1);
    for (const Route &route : description.routes)
        helper.GetStaticRouting(nodes.Get(route.at)->GetObject<Ipv4>())
            ->AddHostRouteTo(hosts[route.to], route.interface);
}

}  // namespace

int main() {
    const Description description = Read(std::cin);
    NodeContainer nodes;
    nodes.Create(description.hosts + description.switches);
    InternetStackHelper stack;
    Ipv4StaticRoutingHelper static_routing;
    if (!description.global_routing)
        stack.SetRoutingHelper(static_routing);
    stack.Install(nodes);
    const std::vector<Ipv4Address> hosts = Connect(description, nodes);
    if (description.global_routing)
        Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    else
        AddRoutes(description, nodes, hosts);

    PacketSinkHelper sinks("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), kDiscardPort));
    ApplicationContainer received;
    for (const Edge &flow : description.flows) {
        received.Add(sinks.Install(nodes.Get(flow.b)));
        OnOffHelper source("ns3::UdpSocketFactory", InetSocketAddress(hosts[flow.b], kDiscardPort));
        source.SetConstantRate(DataRate(description.flow_bps), static_cast<uint32_t>(description.payload_bytes));
        source.Install(nodes.Get(flow.a)).Start(Seconds(0));
    }
    Simulator::Stop(NanoSeconds(description.nanoseconds));
    const std::clock_t start = std::clock();
    Simulator::Run();
    const double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < received.GetN(); i++)
        bytes += DynamicCast<PacketSink>(received.Get(i))->GetTotalRx();
    std::cout << hops << ' ' << bytes / description.payload_bytes << ' ' << seconds << std::endl;
    return 0;
}
